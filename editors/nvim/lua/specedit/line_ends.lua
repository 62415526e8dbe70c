--- Carriage returns within the lines of a buffer. To the server each ends a line, as the protocol has it; to Neovim none
--- does. So the server counts other lines, and what it is told of changes goes astray there.
local sessions = require('specedit.sessions')

local M = {}

--- Buffers in which some were seen.
---@type table<integer, true>
local seen = {}

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
