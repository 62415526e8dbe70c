--- Lines of a buffer that are followed while its text changes. Rows count from 0; the end is the row after the last.
local M = {}

local namespace = vim.api.nvim_create_namespace('specedit.place')

--- Follow lines. What is put in beside them stays outside; no lines at all are a place between two.
---@param bufnr integer
---@param row integer
---@param end_row integer
---@return integer # The number of the place.
function M.follow(bufnr, row, end_row)
  return vim.api.nvim_buf_set_extmark(bufnr, namespace, row, 0, {
    end_row = end_row,
    end_col = 0,
    right_gravity = true,
    end_right_gravity = end_row == row,
  })
end

--- Where the lines are now.
---@param bufnr integer
---@param place integer
---@return integer row, integer end_row
function M.rows(bufnr, place)
  local mark = vim.api.nvim_buf_get_extmark_by_id(bufnr, namespace, place, { details = true })
  local row = mark[1] or 0
  return row, math.max(row, mark[3] and mark[3].end_row or row)
end

--- Follow no longer.
---@param bufnr integer
---@param place integer
function M.forget(bufnr, place)
  if vim.api.nvim_buf_is_valid(bufnr) then
    vim.api.nvim_buf_del_extmark(bufnr, namespace, place)
  end
end

return M
