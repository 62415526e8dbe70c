--- Which words differ between lines that became others.
local M = {}

--- Lines with less in common are others altogether; marking words in them would only be confusing.
local LEAST_IN_COMMON = 0.5
--- Comparing each line with each takes time that a preview does not have.
local MOST_PAIRS = 400

---@alias specedit.Bytes { [1]: integer, [2]: integer } From a byte, counted from 0, up to another.

---@class specedit.Pair
---@field old specedit.Bytes[]
---@field new specedit.Bytes[]

---@param line string
---@return string[]
local function words(line)
  local found, at = {}, 1
  while at <= #line do
    local _, last = line:find('^[%w_\128-\255]+', at)
    if not last then
      _, last = line:find('^%s+', at)
    end
    last = last or at
    table.insert(found, line:sub(at, last))
    at = last + 1
  end
  return found
end

---@param parts string[]
---@param first integer From 1.
---@param count integer
---@return specedit.Bytes
local function bytes(parts, first, count)
  local from = #table.concat(parts, '', 1, first - 1)
  return { from, from + #table.concat(parts, '', first, first + count - 1) }
end

--- How many characters of lines are no blanks.
---@param text string
local function weight(text)
  return #(text:gsub('%s', ''))
end

---@param line string
---@param parts specedit.Bytes[]
local function weight_of(line, parts)
  local sum = 0
  for _, part in ipairs(parts) do
    sum = sum + weight(line:sub(part[1] + 1, part[2]))
  end
  return sum
end

---@param old string
---@param new string
---@return specedit.Pair?
local function compared(old, new)
  if weight(old) == 0 or weight(new) == 0 then
    return nil
  end
  local diff = vim.text.diff or vim.diff
  local one, other = words(old), words(new)
  local pair = { old = {}, new = {} }
  local blocks = diff(table.concat(one, '\n') .. '\n', table.concat(other, '\n') .. '\n', { result_type = 'indices' })
  for _, block in ipairs(blocks) do
    if block[2] > 0 then
      table.insert(pair.old, bytes(one, block[1], block[2]))
    end
    if block[4] > 0 then
      table.insert(pair.new, bytes(other, block[3], block[4]))
    end
  end
  local kept = weight(old) - weight_of(old, pair.old)
  if kept >= LEAST_IN_COMMON * math.max(weight(old), weight(new)) then
    return pair
  end
end

--- What differs, by the numbers of lines: `old[2]` are the parts of the second old line that are no more.
--- Lines that have no counterpart are left out.
---@param old string[]
---@param new string[]
---@return { old: table<integer, specedit.Bytes[]>, new: table<integer, specedit.Bytes[]> }
function M.between(old, new)
  local found = { old = {}, new = {} }
  if #old * #new > MOST_PAIRS then
    return found
  end
  local next_new = 1
  for i, line in ipairs(old) do
    for j = next_new, #new do
      local pair = compared(line, new[j])
      if pair then
        found.old[i], found.new[j] = pair.old, pair.new
        next_new = j + 1
        break
      end
    end
  end
  return found
end

return M
