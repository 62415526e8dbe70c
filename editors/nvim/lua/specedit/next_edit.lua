--- The next edit: proposed by the server, shown where it is, reached and made with one key.
local api = vim.api

local M = {}

---@class specedit.NextEdit
---@field bufnr integer
---@field version integer the text it is for
---@field old string what it replaces, as the buffer has it
---@field new string
---@field start_row integer
---@field start_col integer
---@field end_row integer
---@field end_col integer
---@field row integer where the first change is
---@field col integer

---@type table<integer, specedit.NextEdit>
local proposals = {}

---@return integer
local function namespace()
  return api.nvim_create_namespace('specedit.next_edit')
end

---@param bufnr integer
---@return string
local function group(bufnr)
  return 'specedit.next_edit:' .. bufnr
end

---@param text string
---@param at integer
local function is_inside_character(text, at)
  local byte = text:byte(at)
  return byte and byte >= 0x80 and byte < 0xC0
end

--- How many bytes two texts have in common at the beginning and at the end, in whole characters.
---@param old string
---@param new string
---@return integer head
---@return integer tail
local function in_common(old, new)
  local shorter = math.min(#old, #new)
  local head, tail = 0, 0
  while head < shorter and old:byte(head + 1) == new:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and (is_inside_character(old, head + 1) or is_inside_character(new, head + 1)) do
    head = head - 1
  end
  while tail < shorter - head and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  while tail > 0 and is_inside_character(old, #old - tail + 1) do
    tail = tail - 1
  end
  return head, tail
end

--- Where one is after `text`, which begins at a place.
---@param text string
---@param row integer
---@param col integer
local function after(text, row, col)
  local _, breaks = text:gsub('\n', '')
  if breaks == 0 then
    return row, col + #text
  end
  return row + breaks, #text:match('[^\n]*$')
end

---@param value any
local function is_count(value)
  return type(value) == 'number' and value >= 0 and value % 1 == 0
end

--- Whether a value is a range of a text of so many lines; it may end behind the last.
---@param range any
---@param total integer
local function is_range(range, total)
  if type(range) ~= 'table' or type(range.start) ~= 'table' or type(range['end']) ~= 'table' then
    return false
  end
  local first, last = range.start, range['end']
  return vim.iter({ first.line, first.character, last.line, last.character }):all(is_count)
    and last.line <= total
    and (first.line < last.line or (first.line == last.line and first.character <= last.character))
end

local ENDS = { dos = '\r\n', mac = '\r' }

--- The version of a buffer's text, as the server is told it. Saving makes no new one.
---@param bufnr integer
local function version(bufnr)
  return vim.lsp.util.buf_versions[bufnr]
end

--- A proposal of the server's; nil where it is none, or not for the buffer's text as it is.
---@param bufnr integer
---@param client vim.lsp.Client
---@param params table
---@return specedit.NextEdit?
local function read(bufnr, client, params)
  local range, new, total = params.range, params.newText, api.nvim_buf_line_count(bufnr)
  if params.version ~= version(bufnr) or not is_range(range, total) or type(new) ~= 'string' then
    return nil
  elseif not require('specedit.line_ends').are_counted_alike(bufnr) then
    return nil
  end
  local function line(row)
    return api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  end
  local function place(position)
    if position.line == total then
      return total - 1, #line(total - 1)
    end
    return position.line, vim.str_byteindex(line(position.line), client.offset_encoding, position.character, false)
  end
  local start_row, start_col = place(range.start)
  local end_row, end_col = place(range['end'])
  new = new:gsub(ENDS[vim.bo[bufnr].fileformat] or '\n', '\n')
  -- The server's text ends with a line end, where the buffer has none.
  if range.start.line == total then
    new = '\n' .. new
  elseif range['end'].line == total and new == '' and start_col == 0 and start_row > 0 then
    start_row, start_col = start_row - 1, #line(start_row - 1)
  end
  if range['end'].line == total then
    new = new:gsub('\n$', '')
  end
  local old = table.concat(api.nvim_buf_get_text(bufnr, start_row, start_col, end_row, end_col, {}), '\n')
  local head = in_common(old, new)
  local row, col = after(old:sub(1, head), start_row, start_col)
  return {
    bufnr = bufnr,
    version = params.version,
    old = old,
    new = new,
    start_row = start_row,
    start_col = start_col,
    end_row = end_row,
    end_col = end_col,
    row = row,
    col = col,
  }
end

--- What is known for a buffer, if it is for its text as it is.
---@param bufnr integer
---@return specedit.NextEdit?
local function known(bufnr)
  local edit = proposals[bufnr]
  if edit and edit.version == version(bufnr) then
    return edit
  end
end

--- The key that is mapped to go there, as one reads it; nil where none is.
---@return string?
local function key()
  local mode = api.nvim_get_mode().mode:sub(1, 1) == 'i' and 'i' or 'n'
  for _, maps in ipairs({ api.nvim_buf_get_keymap(0, mode), api.nvim_get_keymap(mode) }) do
    for _, map in ipairs(maps) do
      if map.rhs and map.rhs:lower() == '<plug>(specedit-next-edit)' then
        return vim.fn.keytrans(vim.keycode(map.lhs))
      end
    end
  end
end

---@param edit specedit.NextEdit
local function draw_change(edit)
  local head, tail = in_common(edit.old, edit.new)
  local removed = edit.old:sub(head + 1, #edit.old - tail)
  local added = edit.new:sub(head + 1, #edit.new - tail)
  local end_row, end_col = after(removed, edit.row, edit.col)
  if removed ~= '' then
    api.nvim_buf_set_extmark(edit.bufnr, namespace(), edit.row, edit.col, {
      end_row = end_row,
      end_col = end_col,
      hl_group = 'SpecEditRemoved',
    })
  end
  if added ~= '' and not added:find('\n') then
    api.nvim_buf_set_extmark(edit.bufnr, namespace(), end_row, end_col, {
      virt_text = { { added, 'SpecEditNextEdit' } },
      virt_text_pos = 'inline',
      hl_mode = 'combine',
    })
  elseif added ~= '' then
    -- Several lines are shown whole, as they will be.
    local first = api.nvim_buf_get_lines(edit.bufnr, edit.start_row, edit.start_row + 1, false)[1]
    local last = api.nvim_buf_get_lines(edit.bufnr, edit.end_row, edit.end_row + 1, false)[1]
    local text = first:sub(1, edit.start_col) .. edit.new .. last:sub(edit.end_col + 1)
    local lines = {}
    for line in vim.gsplit(text, '\n', { plain = true }) do
      table.insert(lines, { { line == '' and ' ' or line, 'SpecEditNextEdit' } })
    end
    api.nvim_buf_set_extmark(edit.bufnr, namespace(), edit.end_row, 0, { virt_lines = lines })
  end
end

---@param edit specedit.NextEdit
local function draw_hint(edit)
  local pressed = key()
  local text = ('→ next edit: line %d'):format(edit.row + 1) .. (pressed and (', %s'):format(pressed) or '')
  api.nvim_buf_set_extmark(edit.bufnr, namespace(), api.nvim_win_get_cursor(0)[1] - 1, 0, {
    virt_text = { { '  ' .. text, 'SpecEditHint' } },
    virt_text_pos = 'eol',
  })
end

--- Draw what is proposed in a buffer: where it is, else, where that is off the screen, a hint at the cursor.
---@param bufnr integer
function M.refresh(bufnr)
  if not proposals[bufnr] or not api.nvim_buf_is_valid(bufnr) then
    return
  end
  api.nvim_buf_clear_namespace(bufnr, namespace(), 0, -1)
  local edit = known(bufnr)
  if not edit then
    return M.dismiss(bufnr)
  end
  local is_here = api.nvim_get_current_buf() == bufnr
  local on_its_line = is_here and api.nvim_win_get_cursor(0)[1] - 1 == edit.row
  if on_its_line and require('specedit.inline').is_visible() then
    return
  end
  draw_change(edit)
  if is_here and (edit.row + 1 < vim.fn.line('w0') or edit.row + 1 > vim.fn.line('w$')) then
    draw_hint(edit)
  end
end

local FOLLOWED = {
  'CursorMoved',
  'CursorMovedI',
  'InsertEnter',
  'InsertLeave',
  'TextChanged',
  'TextChangedI',
  'TextChangedP',
}

---@param edit specedit.NextEdit
local function keep(edit)
  proposals[edit.bufnr] = edit
  M.refresh(edit.bufnr)
  local augroup = api.nvim_create_augroup(group(edit.bufnr), {})
  local function refresh()
    M.refresh(edit.bufnr)
  end
  api.nvim_create_autocmd(FOLLOWED, { group = augroup, buffer = edit.bufnr, callback = refresh })
  api.nvim_create_autocmd('WinScrolled', { group = augroup, callback = refresh })
end

--- Take what is proposed in a buffer off the screen.
---@param bufnr? integer the current one where it is not given
---@return boolean dismissed false where nothing is proposed
function M.dismiss(bufnr)
  bufnr = bufnr or api.nvim_get_current_buf()
  if not proposals[bufnr] then
    return false
  end
  proposals[bufnr] = nil
  pcall(api.nvim_del_augroup_by_name, group(bufnr))
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace(), 0, -1)
  end
  return true
end

--- `specedit/nextEdit`: a proposal, or that there is none any more.
---@param params { uri: string, version: integer, range: lsp.Range?, newText: string?, source: string? }
---@param ctx lsp.HandlerContext
function M.on_next_edit(params, ctx)
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  if type(params) ~= 'table' or type(params.uri) ~= 'string' or not client then
    return
  end
  local bufnr = vim.uri_to_bufnr(params.uri)
  if not client.attached_buffers[bufnr] then
    return
  end
  M.dismiss(bufnr)
  local edit = read(bufnr, client, params)
  if edit then
    keep(edit)
  end
end

--- Whether one is known in the current buffer.
---@return boolean
function M.is_known()
  return known(api.nvim_get_current_buf()) ~= nil
end

---@param edit specedit.NextEdit
local function jump(edit)
  vim.cmd("normal! m'")
  api.nvim_win_set_cursor(0, { edit.row + 1, edit.col })
  if api.nvim_get_mode().mode:sub(1, 1) == 'n' then
    vim.cmd('normal! zv')
  end
  M.refresh(edit.bufnr)
end

---@param edit specedit.NextEdit
local function make(edit)
  local bufnr = edit.bufnr
  local found = api.nvim_buf_get_text(bufnr, edit.start_row, edit.start_col, edit.end_row, edit.end_col, {})
  M.dismiss(bufnr)
  if table.concat(found, '\n') ~= edit.old then
    return
  end
  local _, tail = in_common(edit.old, edit.new)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  local lines = vim.split(edit.new, '\n', { plain = true })
  api.nvim_buf_set_text(bufnr, edit.start_row, edit.start_col, edit.end_row, edit.end_col, lines)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
  local row, col = after(edit.new:sub(1, #edit.new - tail), edit.start_row, edit.start_col)
  api.nvim_win_set_cursor(0, { row + 1, col })
end

---@param bufnr integer
local function ask(bufnr)
  local server = require('specedit.server')
  local client = server.client(bufnr)
  local encoding = client and client.offset_encoding or 'utf-16'
  local argument = vim.lsp.util.make_position_params(0, encoding)
  server.command(bufnr, 'specedit.nextEdit', argument, function(err, result)
    if err then
      return
    end
    local edit = client and type(result) == 'table' and read(bufnr, client, result)
    if edit then
      keep(edit)
      if api.nvim_get_current_buf() == bufnr then
        jump(edit)
      end
    else
      server.notify('no next edit here. Make one of your own that can be repeated elsewhere.')
    end
  end)
end

--- Go to the next edit; where the cursor is there, make it. Where none is known, the server is asked for one.
function M.go()
  local bufnr = api.nvim_get_current_buf()
  local edit = known(bufnr)
  if not edit then
    ask(bufnr)
  elseif api.nvim_win_get_cursor(0)[1] - 1 == edit.row then
    make(edit)
  else
    jump(edit)
  end
end

return M
