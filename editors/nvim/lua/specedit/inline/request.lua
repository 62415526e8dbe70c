--- One request for completions at the cursor.
local M = {}

local METHOD = 'textDocument/inlineCompletion'

M.INVOKED, M.AUTOMATIC = 1, 2

--- Whether one is typing, and not choosing in the editor's own list.
---@return boolean
function M.is_typing()
  return vim.startswith(vim.api.nvim_get_mode().mode, 'i') and vim.fn.pumvisible() == 0
end

---@param bufnr integer
---@return string what tells this place in this text from any other
function M.place(bufnr)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return ('%d %d:%d'):format(vim.api.nvim_buf_get_changedtick(bufnr), row, col)
end

--- Ask the server for completions at the cursor in the current buffer.
---@param client vim.lsp.Client
---@param bufnr integer
---@param trigger_kind integer
---@param on_items fun(items: lsp.InlineCompletionItem[], asked: lsp.Position) called unless the cursor or the text have
--- moved on
---@return integer? request_id
function M.send(client, bufnr, trigger_kind, on_items)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = trigger_kind }
  local place = M.place(bufnr)
  local _, request_id = client:request(METHOD, params, function(err, result)
    local is_here = vim.api.nvim_get_current_buf() == bufnr and M.is_typing() and M.place(bufnr) == place
    if not err and type(result) == 'table' and is_here then
      on_items(result.items or result, params.position)
    end
  end, bufnr)
  return request_id
end

return M
