--- When rewrites are drawn anew.
local preview = require('specedit.preview')
local sessions = require('specedit.sessions')

local M = {}

--- The change under the cursor of each session that has one.
---@type table<specedit.Session, specedit.Hunk>
local active = setmetatable({}, { __mode = 'k' })
--- Buffers that are drawn anew once Neovim is done with what it does.
---@type table<integer, true>
local to_draw = {}

--- Draw all rewrites in a buffer as they stand.
---@param bufnr integer
function M.now(bufnr)
  local is_here = bufnr == vim.api.nvim_get_current_buf()
  local here = is_here and sessions.at_row(sessions.open_in(bufnr), sessions.cursor_row()) or nil
  for _, session in ipairs(sessions.of(bufnr)) do
    session:find_hunks()
    active[session] = here and here.session == session and here.hunk or nil
    preview.draw(session, active[session])
  end
end

--- Draw once, however much happens until then.
---@param bufnr integer
function M.soon(bufnr)
  if to_draw[bufnr] then
    return
  end
  to_draw[bufnr] = true
  vim.schedule(function()
    to_draw[bufnr] = nil
    if vim.api.nvim_buf_is_loaded(bufnr) then
      M.now(bufnr)
    end
  end)
end

--- Draw a buffer soon, if the cursor is at another change than the one that is drawn so.
---@param bufnr integer
function M.follow_cursor(bufnr)
  local here = sessions.at_row(sessions.open_in(bufnr), sessions.cursor_row())
  for _, session in ipairs(sessions.of(bufnr)) do
    local hunk = here and here.session == session and here.hunk or nil
    if active[session] ~= hunk then
      M.soon(bufnr)
    end
  end
end

return M
