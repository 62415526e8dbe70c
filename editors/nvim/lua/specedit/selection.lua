--- What the user has selected, as the server is told it.
local M = {}

---@param bufnr integer
---@param row integer From 0.
---@param byte integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Position
local function position(bufnr, row, byte, encoding)
  local line = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  return { line = row, character = vim.str_utfindex(line, encoding, math.min(byte, #line), false) }
end

--- Whole lines, from 1, both included.
---@param bufnr integer
---@param first integer
---@param last integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Range
function M.lines(bufnr, first, last, encoding)
  return { start = { line = first - 1, character = 0 }, ['end'] = position(bufnr, last - 1, math.huge, encoding) }
end

--- The cursor: the function around it is meant.
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Range
function M.cursor(encoding)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local at = position(0, cursor[1] - 1, cursor[2], encoding)
  return { start = at, ['end'] = at }
end

--- What is selected in visual mode; a block counts as its lines.
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return lsp.Range
function M.visual(encoding)
  local one, other = vim.fn.getpos('v'), vim.fn.getpos('.')
  if one[2] > other[2] or (one[2] == other[2] and one[3] > other[3]) then
    one, other = other, one
  end
  if vim.fn.mode() ~= 'v' then
    return M.lines(0, one[2], other[2], encoding)
  end
  local line = vim.fn.getline(other[2])
  local last = other[3] - 1
  if vim.o.selection ~= 'exclusive' then
    last = last + #vim.fn.matchstr(line:sub(other[3]), '.')
  end
  return {
    start = position(0, one[2] - 1, one[3] - 1, encoding),
    ['end'] = position(0, other[2] - 1, last, encoding),
  }
end

--- How a range is called as long as the server has not said it better.
---@param range lsp.Range
---@return string
function M.label(range)
  local first, last = range.start.line + 1, range['end'].line + 1
  if first == last then
    return ('line %d'):format(first)
  end
  return ('lines %d-%d'):format(first, last)
end

return M
