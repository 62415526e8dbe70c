--- Messages of any length that never wait for a key, which whoever types would press for something else.
local M = {}

local SHOWN_MS = 10000
local MOST_COLUMNS = 72
local HIGHLIGHTS = { [vim.log.levels.WARN] = 'WarningMsg', [vim.log.levels.ERROR] = 'ErrorMsg' }

--- The window of the last one.
---@type integer?
local window

local function close()
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
  window = nil
end

--- Whether `vim.notify` is Neovim's own; another one has a place for long messages.
local function is_plain()
  local source = debug.getinfo(vim.notify, 'S').source
  -- Neovim 0.12 keeps no names of its own files.
  return source == '?' or vim.startswith(source, '@vim/')
end

--- The lines of a message, none of them wider than so many columns.
---@param message string
---@param columns integer
---@return string[]
local function wrapped(message, columns)
  local lines = {}
  for paragraph in vim.gsplit(message, '\n', { plain = true }) do
    local fits = vim.fn.strdisplaywidth(paragraph) <= columns
    local line = fits and paragraph or ''
    for word in (fits and '' or paragraph):gmatch('%S+') do
      if line ~= '' and vim.fn.strdisplaywidth(line .. ' ' .. word) <= columns then
        line = line .. ' ' .. word
      else
        table.insert(lines, line ~= '' and line or nil)
        line = word
      end
      while vim.fn.strdisplaywidth(line) > columns do
        local head = vim.fn.strcharpart(line, 0, columns)
        while vim.fn.strdisplaywidth(head) > columns do
          head = vim.fn.strcharpart(head, 0, vim.fn.strchars(head) - 1)
        end
        table.insert(lines, head)
        line = line:sub(#head + 1)
      end
    end
    table.insert(lines, line)
  end
  return lines
end

--- Put lines into `:messages`. One at a time fits where messages are shown, so that none is scrolled.
---@param lines string[]
local function keep(lines)
  for _, line in ipairs(lines) do
    vim.cmd.redraw()
    vim.api.nvim_echo({ { line } }, true, {})
  end
  vim.cmd.redraw()
  vim.api.nvim_echo({ { '' } }, false, {})
end

--- Show lines in a corner for some seconds, under those that are still shown there.
---@param lines string[]
---@param level integer
local function show_aside(lines, level)
  if window and vim.api.nvim_win_is_valid(window) then
    local shown = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false)
    lines = vim.list_extend(shown, lines)
  end
  close()
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  local opened = vim.api.nvim_open_win(bufnr, false, {
    relative = 'editor',
    anchor = 'SE',
    row = vim.o.lines - vim.o.cmdheight - 1,
    col = vim.o.columns,
    width = vim.iter(lines):map(vim.fn.strdisplaywidth):fold(1, math.max),
    height = math.min(#lines, math.max(vim.o.lines - 4, 1)),
    style = 'minimal',
    border = 'rounded',
    focusable = false,
    noautocmd = true,
    zindex = 200,
  })
  vim.wo[opened].winhighlight = 'NormalFloat:' .. (HIGHLIGHTS[level] or 'NormalFloat')
  window = opened
  vim.defer_fn(function()
    if window == opened then
      close()
    end
  end, SHOWN_MS)
end

--- Tell the user something. What is too long for the line of messages is shown in a corner; `:messages` has all.
---@param message string
---@param level integer One of vim.log.levels.
function M.show(message, level)
  local fits = not message:find('\n') and vim.fn.strdisplaywidth(message) < vim.v.echospace
  local is_typing = vim.v.vim_did_enter == 1 and vim.fn.getcmdwintype() == ''
  if fits or not is_typing or not is_plain() then
    vim.notify(message, level, { title = 'specedit' })
    return
  end
  local lines = wrapped(message, math.max(math.min(MOST_COLUMNS, vim.o.columns - 4, vim.v.echospace - 1), 10))
  keep(lines)
  show_aside(lines, level)
end

return M
