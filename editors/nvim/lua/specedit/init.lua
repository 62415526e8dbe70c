--- specedit: completions at the cursor, rewrites of a selection and next edits by a model of your own.
local M = {}

--- Choose options, and start the server for the buffers that it is for. A second call takes the place of the first.
--- What goes to the server (its `cmd` and options) holds for servers that start from then on.
---@param options? specedit.Options
function M.setup(options)
  local chosen = require('specedit.config').setup(options)
  vim.lsp.config('specedit', require('specedit.config').for_server(chosen))
  vim.lsp.enable('specedit')
  require('specedit.inline').setup(chosen.inline)
  local missing = require('specedit.server').why_not_startable()
  if missing then
    require('specedit.server').notify(missing, vim.log.levels.ERROR)
  end
end

return M
