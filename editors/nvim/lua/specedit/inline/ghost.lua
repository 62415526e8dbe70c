--- The text of a completion, drawn where it would stand.
local part = require('specedit.inline.part')

local api = vim.api

local M = {}

--- Draw what is left of a suggestion, in the place of what is drawn in that namespace.
---@param bufnr integer
---@param namespace integer
---@param left specedit.inline.Left
---@param hint? string to draw behind it
function M.draw(bufnr, namespace, left, hint)
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local lines = vim.split(left.text, '\n', { plain = true })
  local below = {}
  for number = 2, #lines do
    -- An empty chunk would leave no line.
    table.insert(below, { { lines[number] == '' and ' ' or lines[number], 'SpecEditHint' } })
  end
  if hint and #below > 0 then
    table.insert(below[#below], { hint, 'SpecEditHint' })
  end
  local parts = part.added(lines[1], left.replaced) or { { offset = 0, text = lines[1] } }
  for number, part in ipairs(parts) do
    local is_last = number == #parts
    local text = part.text .. (is_last and #below == 0 and hint or '')
    if text ~= '' or (is_last and #below > 0) then
      api.nvim_buf_set_extmark(bufnr, namespace, left.row, left.col + part.offset, {
        virt_text = { { text, 'SpecEditHint' } },
        virt_text_pos = 'inline',
        virt_lines = is_last and #below > 0 and below or nil,
        hl_mode = 'combine',
      })
    end
  end
  -- Where the next edit is proposed at the cursor, it is not drawn twice.
  require('specedit.next_edit').refresh(bufnr)
end

--- Draw nothing.
---@param bufnr integer
---@param namespace integer
function M.clear(bufnr, namespace)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
    require('specedit.next_edit').refresh(bufnr)
  end
end

return M
