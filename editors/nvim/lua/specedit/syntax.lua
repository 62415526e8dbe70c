--- The colours that lines would have in a buffer that they do not stand in.
local M = {}

--- More is shown plainly: colours are not worth a wait.
local MOST_CHARS = 20000

---@class specedit.Coloured
---@field [1] integer From this byte of the line, counted from 0,
---@field [2] integer up to this one,
---@field [3] string in the colours of this group.

---@param text string
---@param language string
---@param colour fun(row: integer, from: integer, to: integer, group: string)
local function by_tree(text, language, colour)
  local rows = vim.split(text, '\n', { plain = true })
  local parser = vim.treesitter.get_string_parser(text, language)
  parser:parse(true)
  parser:for_each_tree(function(tree, language_tree)
    local query = vim.treesitter.query.get(language_tree:lang(), 'highlights')
    if not query then
      return
    end
    for id, node in query:iter_captures(tree:root(), text) do
      local name = query.captures[id]
      local row, column, end_row, end_column = node:range()
      for each = row, name:find('^_') and -1 or end_row do
        local to = each == end_row and end_column or #(rows[each + 1] or '')
        colour(each, each == row and column or 0, to, ('@%s.%s'):format(name, language_tree:lang()))
      end
    end
  end)
end

---@param text string
---@param syntax string
---@param colour fun(row: integer, from: integer, to: integer, group: string)
local function by_patterns(text, syntax, colour)
  local rows = vim.split(text, '\n', { plain = true })
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, true, rows)
  vim.api.nvim_buf_call(scratch, function()
    vim.bo.syntax = syntax
    for row, line in ipairs(rows) do
      local from, last = 0, 0
      for column = 1, #line + 1 do
        local id = column <= #line and vim.fn.synIDtrans(vim.fn.synID(row, column, 1)) or 0
        if id ~= last then
          if last ~= 0 then
            colour(row - 1, from, column - 1, vim.fn.synIDattr(last, 'name'))
          end
          from, last = column - 1, id
        end
      end
    end
  end)
  vim.api.nvim_buf_delete(scratch, { force = true })
end

--- How each of `lines` would be coloured in the place of a buffer's text after `above`; later parts count more.
---@param bufnr integer
---@param above string[] What stands before them, for what they are a part of.
---@param lines string[]
---@return table<integer, specedit.Coloured[]> # By the number of the line.
function M.of(bufnr, above, lines)
  local found = {}
  for number in ipairs(lines) do
    found[number] = {}
  end
  local text = table.concat(vim.list_extend(vim.list_slice(above), lines), '\n')
  local function colour(row, from, to, group)
    local parts = found[row + 1 - #above]
    if parts and from < to then
      table.insert(parts, { from, to, group })
    end
  end
  local highlighter = vim.treesitter.highlighter.active[bufnr]
  if #text > MOST_CHARS then
    return found
  elseif highlighter then
    pcall(by_tree, text, highlighter.tree:lang(), colour)
  elseif vim.bo[bufnr].syntax ~= '' then
    by_patterns(text, vim.bo[bufnr].syntax, colour)
  end
  return found
end

return M
