--- Text as the server has it, as lines of a buffer and back.
local M = {}

local ENDS = { unix = '\n', dos = '\r\n', mac = '\r' }

--- The lines of a text. The end of the last line is not one more line: 'endofline' says whether a buffer has it.
--- With 'fileformat' dos `a\r\nb\r\n` is { 'a', 'b' }; with unix it is { 'a\r', 'b\r' }, as Neovim has mixed ends.
---@param text string
---@param fileformat string
---@return string[]
function M.of(text, fileformat)
  if text == '' then
    return {}
  end
  local line_end = ENDS[fileformat]
  local lines = vim.split(text, line_end, { plain = true })
  if lines[#lines] == '' then
    lines[#lines] = nil
  end
  return lines
end

--- How many lines are equal at the beginnings of both, and how many of the others at their ends.
--- Two that are equal altogether have nothing in common: there would be nothing left to show.
---@param old string[]
---@param new string[]
---@return integer, integer
function M.common(old, new)
  local most = math.min(#old, #new)
  local first = 0
  while first < most and old[first + 1] == new[first + 1] do
    first = first + 1
  end
  local last = 0
  while last < most - first and old[#old - last] == new[#new - last] do
    last = last + 1
  end
  if first + last == math.max(#old, #new) then
    return 0, 0
  end
  return first, last
end

return M
