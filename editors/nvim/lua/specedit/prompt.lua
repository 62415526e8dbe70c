--- A line to type an instruction in, beside the code that it is about.
local config = require('specedit.config')
local history = require('specedit.history')

local M = {}

local WIDTH, LEAST_WIDTH = 72, 20

--- Where the window goes: over the line that the code begins in, else under it.
---@param row integer From 0.
---@return vim.api.keyset.win_config
local function beside(row)
  local width = math.max(LEAST_WIDTH, math.min(WIDTH, vim.o.columns - 4))
  local place = vim.fn.screenpos(0, row + 1, 1)
  if place.row == 0 then
    place = vim.fn.screenpos(0, vim.fn.line('w0'), 1)
  end
  -- Its own line and two of border.
  local above = place.row - 1 - 3
  local column = math.max(0, math.min(place.col - 1, vim.o.columns - width - 3))
  return {
    relative = 'editor',
    row = above >= 0 and above or place.row,
    col = column,
    width = width,
    height = 1,
    style = 'minimal',
    border = config.options.prompt.border or (vim.o.winborder == '' and 'rounded' or nil),
  }
end

--- A title that fits, its end cut off where it does not.
---@param text string
---@param width integer
local function fitting(text, width)
  if vim.fn.strdisplaywidth(text) <= width - 2 then
    return (' %s '):format(text)
  end
  local count = vim.fn.strchars(text)
  while count > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) > width - 5 do
    count = count - 1
  end
  return (' %s… '):format(vim.fn.strcharpart(text, 0, count))
end

---@param text string
---@return string
local function on_one_line(text)
  return vim.trim((text:gsub('%s*[\r\n]+%s*', ' ')))
end

--- Ask for an instruction; `callback` is called with it once it is sent, and not at all where the user leaves.
---@param title string What is rewritten.
---@param row integer The line that it begins in, from 0.
---@param callback fun(instruction: string)
---@return fun(title: string) # Takes another title while the prompt is open.
function M.open(title, row, callback)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  local place = beside(row)
  place.title = fitting(title, place.width)
  if vim.fn.has('nvim-0.12') == 1 or place.border then
    place.footer, place.footer_pos = ' <CR> send  <Esc> leave  <Up> before ', 'right'
  end
  local window = vim.api.nvim_open_win(buffer, true, place)
  vim.bo[buffer].filetype = 'specedit_prompt'
  vim.wo[window].wrap = false
  vim.wo[window].sidescrolloff = 4

  local function text()
    return on_one_line(table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), '\n'))
  end
  local function show(line)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, true, { line })
    vim.api.nvim_win_set_cursor(window, { 1, #line })
  end
  local function close()
    vim.cmd.stopinsert()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end

  local given, draft = history.read(), ''
  local at = #given + 1
  local function go(step)
    if at == #given + 1 then
      draft = text()
    end
    at = math.max(1, math.min(#given + 1, at + step))
    show(given[at] or draft)
  end

  local function map(modes, lhs, run)
    vim.keymap.set(modes, lhs, run, { buffer = buffer, nowait = true })
  end
  map({ 'i', 'n' }, '<CR>', function()
    local instruction = text()
    if instruction ~= '' then
      close()
      callback(instruction)
    end
  end)
  map({ 'i', 'n' }, '<Esc>', close)
  map({ 'i', 'n' }, '<C-c>', close)
  for keys, step in pairs({ ['<Up>'] = -1, ['<C-p>'] = -1, ['<Down>'] = 1, ['<C-n>'] = 1 }) do
    map({ 'i', 'n' }, keys, function()
      go(step)
    end)
  end

  vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = buffer,
    callback = function()
      if vim.api.nvim_buf_line_count(buffer) > 1 then
        show(text())
      end
    end,
  })
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buffer, once = true, callback = close })
  vim.cmd.startinsert()

  return function(better)
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_set_config(window, { title = fitting(better, place.width) })
    end
  end
end

return M
