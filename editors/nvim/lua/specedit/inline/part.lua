--- Parts of a completion: what is taken at once, and what of it is new.
local M = {}

--- The length in bytes of the first word: blanks before it, then a word or a run of punctuation.
---
--- What a word is, the buffer's 'iskeyword' says. `word('  foo(bar)')` is 5, `word('(bar)')` is 1.
---@param text string
---@return integer
function M.word(text)
  local length = vim.fn.matchend(text, [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]])
  return length > 0 and length or #text
end

--- The length in bytes of the first line that is not empty, with its end only if more follows.
---@param text string
---@return integer
function M.line(text)
  local _, length = text:find('^\n*[^\n]*')
  return #text > length + 1 and length + 1 or length
end

--- The length in bytes of all of it.
---@param text string
---@return integer
function M.whole(text)
  return #text
end

---@class specedit.inline.Added
---@field offset integer how many bytes behind the cursor
---@field text string

--- What comes in between the characters of `standing` to make `line` of it; nil where they are not all there.
---
--- `added('a, b): x', ')')` is { { offset = 0, text = 'a, b' }, { offset = 1, text = ': x' } }.
---@param line string
---@param standing string
---@return specedit.inline.Added[]?
function M.added(line, standing)
  local found, from, offset = {}, 1, 0
  for char in standing:gmatch('[%z\1-\127\194-\244][\128-\191]*') do
    local first, last = line:find(char, from, true)
    if not first then
      return nil
    end
    table.insert(found, { offset = offset, text = line:sub(from, first - 1) })
    from, offset = last + 1, offset + #char
  end
  table.insert(found, { offset = offset, text = line:sub(from) })
  return found
end

return M
