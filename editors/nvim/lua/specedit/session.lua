--- One rewrite: the part of a buffer that is rewritten, and the changes that the model proposes for it.
---
--- The server says where things are in a version of the text. The part is found in exactly that version, and followed
--- from there; a change is found by its distance from the part's first line, which stays the same however the part
--- moves, and only while the part is what the model was shown.
local lines = require('specedit.lines')
local place = require('specedit.place')

---@class specedit.Hunk
---@field id integer
---@field offset integer How many lines below the part's first line it begins.
---@field old string[] The lines that it replaces.
---@field new string[] The lines that come for them.
---@field place integer? Where it is in the buffer; nil until it could be found there.
---@field looks? { coloured: table<integer, specedit.Coloured[]>, differing: { old: table, new: table } } Kept by preview.

---@class specedit.Session
---@field bufnr integer
---@field client_id integer
---@field token string Of its progress.
---@field instruction string
---@field at_once boolean Whether all changes are made as soon as the model is done.
---@field id string?
---@field label string What the part is called.
---@field state 'asked'|'writing'|'ready'
---@field percent integer
---@field hunks table<integer, specedit.Hunk> Those that are not decided on, by their ids.
---@field private place integer? Where the part is.
---@field private before string[] The part as the model was shown it.
---@field private version integer The version of the text that the server's next ranges are in.
---@field private line integer The part's first line in that version.
---@field private height integer How many lines the part has in it.
local Session = {}
Session.__index = Session

local M = {}

--- The version of a buffer's text, as the server is told it.
---@param bufnr integer
---@return integer
function M.version(bufnr)
  return vim.lsp.util.buf_versions[bufnr]
end

--- A rewrite that is about to be asked for.
---@param bufnr integer
---@param client_id integer
---@param token string
---@param instruction string
---@param at_once boolean
---@return specedit.Session
function M.new(bufnr, client_id, token, instruction, at_once)
  return setmetatable({
    bufnr = bufnr,
    client_id = client_id,
    token = token,
    instruction = instruction,
    at_once = at_once,
    label = '',
    state = 'asked',
    percent = 0,
    hunks = {},
  }, Session)
end

--- The server has begun.
---@param answer { session: string, version: integer, range: lsp.Range, label: string }
function Session:begin(answer)
  local first, last = answer.range.start, answer.range['end']
  self.id, self.label, self.state = answer.session, answer.label, 'writing'
  self.version, self.line = answer.version, first.line
  self.height = last.line + (last.character > 0 and 1 or 0) - first.line
  self:_find_part()
end

--- The text changed elsewhere: ranges are in another version from now on, in which the part is `moved` lines further on.
---@param version integer
---@param moved integer
function Session:rebase(version, moved)
  self.version, self.line = version, self.line + moved
  self:_find_part()
end

--- The model proposes a change, or another one in the place of one that it proposed.
---@param id integer
---@param range lsp.Range
---@param old_text string
---@param new_text string
function Session:propose(id, range, old_text, new_text)
  local fileformat = vim.bo[self.bufnr].fileformat
  local old, new = lines.of(old_text, fileformat), lines.of(new_text, fileformat)
  local first, last = lines.common(old, new)
  -- What comes after the last line, where that has no end, begins within it.
  local after = range.start.character > 0 and 1 or 0
  self:drop(id)
  self.hunks[id] = {
    id = id,
    offset = range.start.line + after - self.line + first,
    old = vim.list_slice(old, first + 1, #old - last),
    new = vim.list_slice(new, first + 1, #new - last),
  }
  self:find_hunks()
end

--- A change is proposed no more, or decided on.
---@param id integer
function Session:drop(id)
  local hunk = self.hunks[id]
  if hunk and hunk.place then
    place.forget(self.bufnr, hunk.place)
  end
  self.hunks[id] = nil
end

--- Find the part in the text, if this is the version that the server said where it is in.
---@private
function Session:_find_part()
  if self.place or M.version(self.bufnr) ~= self.version then
    return
  end
  local end_row = math.min(self.line + self.height, vim.api.nvim_buf_line_count(self.bufnr))
  self.place = place.follow(self.bufnr, self.line, end_row)
  self.before = vim.api.nvim_buf_get_lines(self.bufnr, self.line, end_row, true)
  self:find_hunks()
end

--- The rows of the part: the first, and the one after the last; nil until it is found.
---@return integer? row, integer? end_row
function Session:rows()
  if self.place then
    return place.rows(self.bufnr, self.place)
  end
end

--- Find the changes in the text that could not be found there before.
function Session:find_hunks()
  local row, end_row = self:rows()
  local is_missing = vim.iter(pairs(self.hunks)):any(function(_, hunk)
    return not hunk.place
  end)
  if not row or not is_missing then
    return
  elseif not vim.deep_equal(vim.api.nvim_buf_get_lines(self.bufnr, row, end_row, true), self.before) then
    return
  end
  for _, hunk in pairs(self.hunks) do
    local first = row + hunk.offset
    if not hunk.place and hunk.offset >= 0 and first + #hunk.old <= vim.api.nvim_buf_line_count(self.bufnr) then
      hunk.place = place.follow(self.bufnr, first, first + #hunk.old)
    end
  end
end

--- The rows of a change; nil until it is found.
---@param hunk specedit.Hunk
---@return integer? row, integer? end_row
function Session:hunk_rows(hunk)
  if hunk.place then
    return place.rows(self.bufnr, hunk.place)
  end
end

--- Whether the lines that a change replaces are still what they were.
---@param hunk specedit.Hunk
---@return boolean
function Session:fits(hunk)
  local row, end_row = self:hunk_rows(hunk)
  return row ~= nil and vim.deep_equal(vim.api.nvim_buf_get_lines(self.bufnr, row, end_row, false), hunk.old)
end

--- The changes that are not decided on, from top to bottom.
---@return specedit.Hunk[]
function Session:open_hunks()
  local hunks = vim.tbl_values(self.hunks)
  table.sort(hunks, function(one, other)
    if one.offset ~= other.offset then
      return one.offset < other.offset
    end
    return one.id < other.id
  end)
  return hunks
end

--- Let go of all places.
function Session:close()
  for id in pairs(self.hunks) do
    self:drop(id)
  end
  if self.place then
    place.forget(self.bufnr, self.place)
    self.place = nil
  end
end

return M
