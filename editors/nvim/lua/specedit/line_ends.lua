--- Carriage returns within the lines of a buffer. To the server each ends a line, as the protocol has it; to Neovim none
--- does. So the server counts other lines, and what it is told of changes goes astray there.
local sessions = require('specedit.sessions')

local M = {}

--- Buffers in which some were seen.
---@type table<integer, true>
local seen = {}
--- Buffers that are watched.
---@type table<integer, true>
local watched = {}

--- Whether the server counts the lines of a buffer as Neovim does. `\r\n` is one end to it too.
---@param bufnr integer
---@return boolean
function M.are_counted_alike(bufnr)
  local is_unix, are_alike = vim.bo[bufnr].fileformat == 'unix', true
  for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true)) do
    local at = line:find('\r', 1, true)
    if at then
      seen[bufnr] = true
      are_alike = are_alike and is_unix and at == #line
    end
  end
  return are_alike
end

--- Notice carriage returns from now on, also those that are gone before a rewrite is asked for.
---@param bufnr integer
function M.watch(bufnr)
  M.are_counted_alike(bufnr)
  if watched[bufnr] then
    return
  end
  watched[bufnr] = vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, _, first, _, last)
      for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, first, last, false)) do
        seen[bufnr] = seen[bufnr] or line:find('\r', 1, true) ~= nil or nil
      end
    end,
    on_reload = function()
      M.are_counted_alike(bufnr)
    end,
    on_detach = function()
      watched[bufnr], seen[bufnr] = nil, nil
    end,
  }) or nil
end

--- Have the server read a buffer anew that it may have gone astray in, unless it is at work there.
---@param client vim.lsp.Client
---@param bufnr integer
function M.mend(client, bufnr)
  if seen[bufnr] and #sessions.of(bufnr) == 0 then
    seen[bufnr] = nil
    vim.lsp.buf_detach_client(bufnr, client.id)
    vim.lsp.buf_attach_client(bufnr, client.id)
  end
end

return M
