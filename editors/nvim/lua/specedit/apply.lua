--- Making changes in a buffer: all that fit, as one step to undo, or none where the buffer takes none.
local line_ends = require('specedit.line_ends')

local M = {}

--- Why a buffer's text can't be changed, and what to do about it; nil where it can.
---@param bufnr integer
---@return string?
function M.why_not(bufnr)
  if not vim.bo[bufnr].modifiable then
    return "this buffer is not modifiable. Set 'modifiable' and try again."
  elseif vim.bo[bufnr].readonly then
    return "this buffer is read-only. Set 'noreadonly' and try again."
  elseif not line_ends.are_counted_alike(bufnr) then
    return 'a line here holds a carriage return, which would be taken for its end. Find it with /\\r, take it out and try again.'
  end
end

--- End the step to undo that may be under way, so that the next change begins one of its own.
local function end_undo_step()
  vim.bo.undolevels = vim.bo.undolevels
end

--- Make changes of a session. Nothing but the lines of a change is touched, so cursors, marks and folds elsewhere stay.
---@param session specedit.Session
---@param hunks specedit.Hunk[]
---@return specedit.Hunk[] made
---@return specedit.Hunk[] unfit Those whose lines are others now; they were left out.
function M.make(session, hunks)
  local made, unfit = {}, {}
  for _, hunk in ipairs(hunks) do
    table.insert(session:fits(hunk) and made or unfit, hunk)
  end
  vim.api.nvim_buf_call(session.bufnr, function()
    end_undo_step()
    for _, hunk in vim.iter(made):rev():enumerate() do
      local row, end_row = session:hunk_rows(hunk)
      vim.api.nvim_buf_set_lines(session.bufnr, row, end_row, true, hunk.new)
    end
    end_undo_step()
  end)
  return made, unfit
end

return M
