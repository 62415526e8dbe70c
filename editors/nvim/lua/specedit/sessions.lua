--- The rewrites that are shown, and which of them, and of their changes, the cursor means.
local preview = require('specedit.preview')

local M = {}

--- By buffer, the first one asked for first.
---@type table<integer, specedit.Session[]>
local shown = {}

--- Those in a buffer.
---@param bufnr integer
---@return specedit.Session[]
function M.of(bufnr)
  return shown[bufnr] or {}
end

--- The buffers in which there are any.
---@return integer[]
function M.buffers()
  return vim.tbl_keys(shown)
end

--- Show one more.
---@param session specedit.Session
function M.add(session)
  shown[session.bufnr] = shown[session.bufnr] or {}
  table.insert(shown[session.bufnr], session)
end

--- Show one no more.
---@param session specedit.Session
function M.remove(session)
  preview.clear(session)
  session:close()
  local rest = vim.tbl_filter(function(other)
    return other ~= session
  end, M.of(session.bufnr))
  shown[session.bufnr] = #rest > 0 and rest or nil
end

--- The rewrite that a server knows by that id.
---@param client_id integer
---@param id string
---@return specedit.Session?
function M.find(client_id, id)
  for _, sessions in pairs(shown) do
    for _, session in ipairs(sessions) do
      if session.client_id == client_id and session.id == id then
        return session
      end
    end
  end
end

--- The first and the last row that a change is shown at.
---@param session specedit.Session
---@param hunk specedit.Hunk
---@return integer, integer
local function reach(session, hunk)
  local row, end_row = session:hunk_rows(hunk)
  if not row then
    row, end_row = session:rows()
    return row or 0, row or 0
  end
  local last = vim.api.nvim_buf_line_count(session.bufnr) - 1
  return math.min(row, last), math.min(math.max(row, end_row - 1), last)
end

---@alias specedit.Open { session: specedit.Session, hunk: specedit.Hunk, first: integer, last: integer }

--- All changes in a buffer that are not decided on, from top to bottom.
---@param bufnr integer
---@return specedit.Open[]
function M.open_in(bufnr)
  local found = {}
  for _, session in ipairs(M.of(bufnr)) do
    for _, hunk in ipairs(session:open_hunks()) do
      local first, last = reach(session, hunk)
      table.insert(found, { session = session, hunk = hunk, first = first, last = last })
    end
  end
  table.sort(found, function(one, other)
    if one.first ~= other.first then
      return one.first < other.first
    end
    return one.hunk.id < other.hunk.id
  end)
  return found
end

--- The row of the cursor, from 0.
---@return integer
function M.cursor_row()
  return vim.api.nvim_win_get_cursor(0)[1] - 1
end

--- The change at a row; lines that come in between two are at both of them.
---@param open specedit.Open[]
---@param row integer
---@return specedit.Open?
function M.at_row(open, row)
  for _, each in ipairs(open) do
    if each.first <= row and row <= each.last then
      return each
    end
  end
  for _, each in ipairs(open) do
    if #each.hunk.old == 0 and row == each.first - 1 then
      return each
    end
  end
end

--- The change at the cursor, else the next one, else the first one.
---@return specedit.Open?
function M.chosen()
  local open, row = M.open_in(vim.api.nvim_get_current_buf()), M.cursor_row()
  local here = M.at_row(open, row)
  if here then
    return here
  end
  for _, each in ipairs(open) do
    if each.first > row then
      return each
    end
  end
  return open[1]
end

--- The rewrite at the cursor, else that of the next change, else the last one.
---@return specedit.Session?
function M.chosen_session()
  local sessions, row = M.of(vim.api.nvim_get_current_buf()), M.cursor_row()
  for _, session in ipairs(sessions) do
    local first, after = session:rows()
    if first and first <= row and row < after then
      return session
    end
  end
  local next_one = M.chosen()
  return next_one and next_one.session or sessions[#sessions]
end

return M
