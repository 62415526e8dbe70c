--- A completion proposed at a place, and what is left of it as the text there goes on.
local part = require('specedit.inline.part')

local api = vim.api

local M = {}

-- Editors set these by themselves behind what is typed.
local CLOSERS = '^[%)%]}>"\'`]*$'

---@class specedit.inline.Suggestion
---@field bufnr integer
---@field client vim.lsp.Client
---@field item lsp.InlineCompletionItem
---@field row integer where its text begins, from 0
---@field col integer in bytes
---@field replaced string what stood behind the cursor and goes
---@field after string what stood behind that in the line, and stays
---@field is_told boolean whether the server knows that it was shown
local Suggestion = {}
Suggestion.__index = Suggestion

---@class specedit.inline.Left what of a suggestion is not in the text yet
---@field text string
---@field row integer where the cursor is, from 0
---@field col integer in bytes
---@field replaced string what behind the cursor goes
---@field standing integer how many bytes of the suggestion stand before the cursor

---@return integer row
---@return integer col
local function cursor()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  return row - 1, col
end

---@param bufnr integer
---@param row integer
---@return string
local function line_at(bufnr, row)
  return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
end

--- An item of the server's answer, in the current buffer; nil where it can't be one.
---@param bufnr integer
---@param client vim.lsp.Client
---@param item lsp.InlineCompletionItem
---@param asked lsp.Position where the cursor was when the server was asked
---@return specedit.inline.Suggestion?
function M.new(bufnr, client, item, asked)
  local text, range = item.insertText, item.range
  if type(text) ~= 'string' or text == '' or bufnr ~= api.nvim_get_current_buf() then
    return nil
  end
  local start = range and range.start or asked
  local units = range and range['end'].character - asked.character or 0
  if start.line ~= asked.line or (range and range['end'].line ~= asked.line) or units < 0 then
    return nil
  end
  local row, col = cursor()
  local behind = line_at(bufnr, row):sub(col + 1)
  local bytes = vim.str_byteindex(behind, client.offset_encoding, units, false)
  return setmetatable({
    bufnr = bufnr,
    client = client,
    item = item,
    row = start.line,
    col = vim.str_byteindex(line_at(bufnr, start.line), client.offset_encoding, start.character, false),
    replaced = behind:sub(1, bytes),
    after = behind:sub(bytes + 1),
    is_told = false,
  }, Suggestion)
end

--- What is left of it at the cursor; nil where the text went another way.
---
--- It goes along where nothing but its own beginning has come in before the cursor, and nothing but closing brackets
--- and quotes behind.
---@return specedit.inline.Left?
function Suggestion:left()
  if api.nvim_get_current_buf() ~= self.bufnr then
    return nil
  end
  local row, col = cursor()
  local found, lines = pcall(api.nvim_buf_get_text, self.bufnr, self.row, self.col, row, col, {})
  local standing, text = found and table.concat(lines, '\n') or nil, self.item.insertText
  if not standing or standing == text or not vim.startswith(text, standing) then
    return nil
  end
  local left, behind = text:sub(#standing + 1), line_at(self.bufnr, row):sub(col + 1)
  local replaced = behind:sub(1, math.max(#behind - #self.after, 0))
  if replaced .. self.after ~= behind then
    return nil
  end
  if replaced ~= self.replaced and not (replaced:find(CLOSERS) and part.added(left:match('^[^\n]*'), replaced)) then
    return nil
  end
  return { text = left, row = row, col = col, replaced = replaced, standing = #standing }
end

-- What is undone by one `u` ends where an option is set.
local function break_undo()
  vim.bo.undolevels = vim.bo.undolevels
end

--- Put the first bytes of what is left into the text, as a step of its own to undo, and tell the server.
---@param length_of fun(text: string): integer how many
---@return boolean taken false where the text went another way
function Suggestion:take(length_of)
  local left = self:left()
  if not left then
    return false
  end
  local text = left.text:sub(1, length_of(left.text))
  local is_whole = text == left.text
  local lines = vim.split(text, '\n', { plain = true })
  local end_col = left.col + (is_whole and #left.replaced or 0)
  break_undo()
  api.nvim_buf_set_text(self.bufnr, left.row, left.col, left.row, end_col, lines)
  api.nvim_win_set_cursor(0, { left.row + #lines, (#lines == 1 and left.col or 0) + #lines[#lines] })
  break_undo()
  if is_whole then
    self:tell_accepted()
  else
    self:tell_partially_accepted(left.standing + #text)
  end
  return true
end

--- Tell the server that it is on the screen, once.
function Suggestion:tell_shown()
  if not self.is_told then
    self.is_told = true
    self.client:notify('textDocument/didShowCompletion', { item = self.item })
  end
end

---@private
function Suggestion:tell_accepted()
  if self.item.command then
    self.client:exec_cmd(self.item.command, { bufnr = self.bufnr })
  end
end

---@private
---@param bytes integer how many of its text stand in the document now
function Suggestion:tell_partially_accepted(bytes)
  self.client:notify('textDocument/didPartiallyAcceptCompletion', {
    item = self.item,
    acceptedLength = vim.str_utfindex(self.item.insertText:sub(1, bytes), 'utf-16'),
  })
end

return M
