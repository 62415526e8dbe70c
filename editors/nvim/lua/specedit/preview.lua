--- How a rewrite looks in the buffer: a line above it that says how it stands, its lines marked in the sign column,
--- what goes and what comes, and at the change under the cursor how to decide on it.
local config = require('specedit.config')
local keys = require('specedit.keys')
local syntax = require('specedit.syntax')
local word_diff = require('specedit.word_diff')

local M = {}

local namespace = vim.api.nvim_create_namespace('specedit.preview')
local SIGN_PRIORITY, REMOVED_PRIORITY, REMOVED_TEXT_PRIORITY = 5, 190, 195

---@alias specedit.Chunk { [1]: string, [2]: string|string[] }

--- The marks of each session that is drawn.
---@type table<specedit.Session, integer[]>
local drawn = setmetatable({}, { __mode = 'k' })

---@param session specedit.Session
---@param row integer
---@param column integer
---@param options vim.api.keyset.set_extmark
local function mark(session, row, column, options)
  options.strict = false
  table.insert(drawn[session], vim.api.nvim_buf_set_extmark(session.bufnr, namespace, row, column, options))
end

---@param bufnr integer
---@return integer
local function text_width(bufnr)
  local window = vim.fn.bufwinid(bufnr)
  local info = window ~= -1 and vim.fn.getwininfo(window)[1]
  return info and math.max(10, info.width - info.textoff) or vim.o.columns
end

--- Text with spaces for its tabs, as the current buffer shows it from a column on.
---@param text string
---@param column integer
---@return string shown, integer width
local function untabbed(text, column)
  local shown, width = {}, 0
  for part, tab in text:gmatch('([^\t]*)(\t?)') do
    width = width + vim.fn.strdisplaywidth(part, column + width)
    table.insert(shown, part)
    if tab ~= '' then
      local wide = vim.fn.strdisplaywidth('\t', column + width)
      table.insert(shown, (' '):rep(wide))
      width = width + wide
    end
  end
  return table.concat(shown), width
end

--- A new line as chunks, each in the colours of what it is.
---@param line string
---@param coloured specedit.Coloured[]
---@param differing specedit.Bytes[]
---@return specedit.Chunk[]
local function chunks_of(line, coloured, differing)
  local cuts = { 0, #line }
  for _, part in ipairs(vim.list_extend(vim.list_slice(coloured), differing)) do
    table.insert(cuts, math.min(part[1], #line))
    table.insert(cuts, math.min(part[2], #line))
  end
  table.sort(cuts)
  local chunks, column = {}, 0
  for i = 1, #cuts - 1 do
    local from, to = cuts[i], cuts[i + 1]
    if from < to then
      local groups = { 'SpecEditAdded' }
      for _, part in ipairs(coloured) do
        if part[1] <= from and to <= part[2] then
          groups[2] = part[3]
        end
      end
      for _, part in ipairs(differing) do
        if part[1] <= from and to <= part[2] then
          table.insert(groups, 'SpecEditAddedText')
        end
      end
      local shown, width = untabbed(line:sub(from + 1, to), column)
      column = column + width
      table.insert(chunks, { shown, groups })
    end
  end
  return chunks
end

--- Chunks as lines of at most `width` columns, filled to their ends.
---@param chunks specedit.Chunk[]
---@param width integer
---@return specedit.Chunk[][]
local function wrapped(chunks, width)
  local rows, row, column = {}, {}, 0
  local function finish()
    table.insert(row, { (' '):rep(width - column), 'SpecEditAdded' })
    table.insert(rows, row)
    row, column = {}, 0
  end
  for _, chunk in ipairs(chunks) do
    local text = chunk[1]
    while column + vim.fn.strdisplaywidth(text) > width do
      local count = vim.fn.strchars(text)
      while count > 0 and column + vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, count)) > width do
        count = count - 1
      end
      if count == 0 and column == 0 then
        break -- A character wider than the window.
      end
      table.insert(row, { vim.fn.strcharpart(text, 0, count), chunk[2] })
      column = column + vim.fn.strdisplaywidth(row[#row][1])
      text = vim.fn.strcharpart(text, count)
      finish()
    end
    table.insert(row, { text, chunk[2] })
    column = column + vim.fn.strdisplaywidth(text)
  end
  width = math.max(width, column)
  finish()
  return rows
end

--- What is shown of a change that does not change itself, worked out once.
---@param session specedit.Session
---@param hunk specedit.Hunk
local function looks(session, hunk)
  if not hunk.looks then
    local row = session:hunk_rows(hunk)
    local above = vim.api.nvim_buf_get_lines(session.bufnr, session:rows(), row, false)
    local coloured = config.options.preview.syntax and syntax.of(session.bufnr, above, hunk.new) or {}
    hunk.looks = { coloured = coloured, differing = word_diff.between(hunk.old, hunk.new) }
  end
  return hunk.looks
end

---@param bufnr integer
---@param hunk specedit.Hunk
---@param width integer
---@return specedit.Chunk[][]
local function added_lines(bufnr, hunk, width)
  local wraps = vim.fn.bufwinid(bufnr) == -1 or vim.wo[vim.fn.bufwinid(bufnr)].wrap
  local rows = {}
  vim.api.nvim_buf_call(bufnr, function()
    for number, line in ipairs(hunk.new) do
      local chunks = chunks_of(line, hunk.looks.coloured[number] or {}, hunk.looks.differing.new[number] or {})
      vim.list_extend(rows, wrapped(chunks, wraps and width or math.max(width, 2 * vim.o.columns)))
    end
  end)
  return rows
end

---@param session specedit.Session
---@param hunk specedit.Hunk
---@param number integer
---@return string
local function hint(session, hunk, number)
  local of = ('%d of %d'):format(number, vim.tbl_count(session.hunks))
  if not session:fits(hunk) then
    return ('out of date: undo your edit here, or reject %s'):format(keys.of(session.bufnr, 'reject', 'SpecEditReject'))
  end
  return ('%s  accept %s  reject %s'):format(
    of,
    keys.of(session.bufnr, 'accept', 'SpecEditAccept'),
    keys.of(session.bufnr, 'reject', 'SpecEditReject')
  )
end

--- Put a hint at the end of a line that is filled with blanks, if they are enough.
---@param line specedit.Chunk[]
---@param text string
---@return boolean
local function put_in_blanks(line, text)
  local blanks, needed = line[#line][1], vim.fn.strdisplaywidth(text) + 2
  if #blanks < needed + 2 then
    return false
  end
  line[#line] = { blanks:sub(1, #blanks - needed), 'SpecEditAdded' }
  vim.list_extend(line, { { text, { 'SpecEditAdded', 'SpecEditHint' } }, { '  ', 'SpecEditAdded' } })
  return true
end

---@param session specedit.Session
---@param hunk specedit.Hunk
---@param number integer
---@param is_active boolean
local function draw_hunk(session, hunk, number, is_active)
  local row, end_row = session:hunk_rows(hunk)
  if not row then
    return
  end
  local bufnr = session.bufnr
  local last = math.max(vim.api.nvim_buf_line_count(bufnr) - 1, 0)
  if not session:fits(hunk) then
    local text = is_active and hint(session, hunk, number) or 'out of date'
    mark(session, math.min(row, last), 0, { virt_text = { { '  ' .. text, 'SpecEditStale' } }, virt_text_pos = 'eol' })
    return
  end
  local look, width = looks(session, hunk), text_width(bufnr)
  for at = row, end_row - 1 do
    mark(session, at, 0, {
      end_row = at + 1,
      hl_group = 'SpecEditRemoved',
      hl_eol = true,
      priority = REMOVED_PRIORITY,
    })
    for _, part in ipairs(look.differing.old[at - row + 1] or {}) do
      mark(session, at, part[1], {
        end_col = part[2],
        hl_group = 'SpecEditRemovedText',
        priority = REMOVED_TEXT_PRIORITY,
      })
    end
  end
  local added = added_lines(bufnr, hunk, width)
  if is_active and config.options.preview.hints then
    local text = hint(session, hunk, number)
    if end_row > row then
      mark(session, row, 0, {
        virt_text = { { text .. '  ', { 'SpecEditRemoved', 'SpecEditHint' } } },
        virt_text_pos = 'eol_right_align',
      })
    elseif not put_in_blanks(added[1], text) then
      table.insert(added, { { text, 'SpecEditHint' } })
    end
  end
  if #added > 0 then
    -- Above the part's first line they stand under the line that says how it is, not over it.
    local is_above = end_row == session:rows()
    mark(session, math.min(math.max(is_above and row or end_row - 1, 0), last), 0, {
      virt_lines = added,
      virt_lines_above = is_above,
    })
  end
end

---@param session specedit.Session
---@return string[] # What is said first matters most.
local function standing(session)
  local count = vim.tbl_count(session.hunks)
  local changes = ('%d %s'):format(count, count == 1 and 'change' or 'changes')
  local function by(what, name, command)
    return ('  %s %s'):format(what, keys.of(session.bufnr, name, command))
  end
  if session.state == 'ready' then
    return {
      '  ' .. changes .. '  ',
      by('accept all', 'accept-all', 'SpecEditAcceptAll'),
      by('reject all', 'reject-all', 'SpecEditRejectAll'),
      by('another answer', 'regenerate', 'SpecEditRegenerate'),
    }
  end
  local so_far = count > 0 and (' · %s so far'):format(changes) or ''
  return { ('  %d%%%s  '):format(session.percent, so_far), by('cancel', 'cancel', 'SpecEditCancel') }
end

--- As many of the parts as fit.
---@param parts string[]
---@param width integer
---@return string
local function fitting(parts, width)
  local text = ''
  for _, part in ipairs(parts) do
    if vim.fn.strdisplaywidth(text .. part) > width then
      break
    end
    text = text .. part
  end
  return text
end

--- Lines above the first one of a buffer are only seen where a window is told that there are some.
---@param bufnr integer
---@param count integer
local function show_above_first(bufnr, count)
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    vim.api.nvim_win_call(window, function()
      local view = vim.fn.winsaveview()
      if view.topline == 1 and view.topfill ~= count then
        vim.fn.winrestview({ topline = 1, topfill = count })
      end
    end)
  end
end

--- What to show in the sign column; nil where the text would have to move aside for it, and line numbers do as well.
---@param bufnr integer
---@return string?
local function sign_for(bufnr)
  local sign, window = config.options.preview.sign, vim.fn.bufwinid(bufnr)
  local moves_text = window == -1 or vim.startswith(vim.wo[window].signcolumn, 'auto')
  local has_numbers = window ~= -1 and (vim.wo[window].number or vim.wo[window].relativenumber)
  return sign ~= '' and not (moves_text and has_numbers) and sign or nil
end

---@param session specedit.Session
---@param row integer
---@param end_row integer
local function draw_part(session, row, end_row)
  local bufnr = session.bufnr
  local sign = sign_for(bufnr)
  for at = row, math.max(row, end_row - 1) do
    mark(session, at, 0, {
      sign_text = sign,
      sign_hl_group = sign and 'SpecEditRegion',
      number_hl_group = 'SpecEditRegion',
      priority = SIGN_PRIORITY,
    })
  end
  local first = vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  local indent = vim.api.nvim_buf_call(bufnr, function()
    return (untabbed(first:match('^%s*'), 0))
  end)
  local title = session.state == 'ready' and session.label or ('rewriting %s'):format(session.label)
  local left = text_width(bufnr) - vim.fn.strdisplaywidth(indent .. title)
  local line = {
    { indent, 'SpecEditHint' },
    { title, 'SpecEditRegion' },
    { fitting(standing(session), left), 'SpecEditHint' },
  }
  local last = math.max(vim.api.nvim_buf_line_count(bufnr) - 1, 0)
  mark(session, math.min(row, last), 0, { virt_lines = { line }, virt_lines_above = true })
end

--- Show a session as it stands now.
---@param session specedit.Session
---@param active? specedit.Hunk The change under the cursor.
function M.draw(session, active)
  M.clear(session)
  drawn[session] = {}
  local row, end_row = session:rows()
  if not row then
    return
  end
  draw_part(session, row, end_row)
  local above = row == 0 and 1 or 0
  for number, hunk in ipairs(session:open_hunks()) do
    draw_hunk(session, hunk, number, hunk == active and session.state == 'ready')
    local first, after = session:hunk_rows(hunk)
    above = above + (first == 0 and after == 0 and #hunk.new or 0)
  end
  if above > 0 then
    show_above_first(session.bufnr, above)
  end
end

--- Show nothing of a session any more.
---@param session specedit.Session
function M.clear(session)
  for _, id in ipairs(drawn[session] or {}) do
    if vim.api.nvim_buf_is_valid(session.bufnr) then
      vim.api.nvim_buf_del_extmark(session.bufnr, namespace, id)
    end
  end
  drawn[session] = nil
end

return M
