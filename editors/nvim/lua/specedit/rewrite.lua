--- Rewriting: what the user commands, what the server tells, and the rewrites that are under way.
local apply = require('specedit.apply')
local history = require('specedit.history')
local keys = require('specedit.keys')
local preview = require('specedit.preview')
local selection = require('specedit.selection')
local server = require('specedit.server')
local session_of = require('specedit.session')

local M = {}

local WARN, ERROR = vim.log.levels.WARN, vim.log.levels.ERROR

--- By buffer, those that are shown; the first one asked for first.
---@type table<integer, specedit.Session[]>
local shown = {}
--- By buffer, the last one that was begun, which can be asked for again.
---@type table<integer, { client_id: integer, id: string, instruction: string, at_once: boolean }>
local latest = {}
--- While answers are waited for, what was told before them of rewrites that they may be about: by client, then by id.
---@type table<integer, { awaited: integer, told: table<string, fun(session: specedit.Session)[]> }>
local early = {}
--- Buffers whose changes are followed.
---@type table<integer, true>
local followed = {}
--- The change under the cursor of each session that has one.
---@type table<specedit.Session, specedit.Hunk>
local active = setmetatable({}, { __mode = 'k' })
--- Buffers that are drawn anew once Neovim is done with what it does.
---@type table<integer, true>
local to_draw = {}

local tokens = 0
local is_watching = false

---@param count integer
local function changes(count)
  return ('%d %s'):format(count, count == 1 and 'change' or 'changes')
end

---@param pattern string
---@param bufnr integer
---@param data table
local function announce(pattern, bufnr, data)
  data.bufnr = bufnr
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = data })
end

--- Tell the user something that fits on one line, without what may be left out where it does not.
---@param message string
---@param rest string
local function tell(message, rest)
  local whole = message .. rest
  server.notify(vim.fn.strdisplaywidth(whole) + #'specedit: ' < vim.v.echospace and whole or message)
end

-- Finding

---@param client_id integer
---@param id string
---@return specedit.Session?
local function find(client_id, id)
  for _, sessions in pairs(shown) do
    for _, session in ipairs(sessions) do
      if session.client_id == client_id and session.id == id then
        return session
      end
    end
  end
end

---@param bufnr integer
---@return specedit.Session[]
local function sessions_in(bufnr)
  return shown[bufnr] or {}
end

--- The first and the last row that a change is shown at.
---@param session specedit.Session
---@param hunk specedit.Hunk
---@return integer, integer
local function reach(session, hunk)
  local row, end_row = session:hunk_rows(hunk)
  if not row then
    row, end_row = session:rows()
    return row or 0, row or 0
  end
  local last = vim.api.nvim_buf_line_count(session.bufnr) - 1
  return math.min(row, last), math.min(math.max(row, end_row - 1), last)
end

---@alias specedit.Open { session: specedit.Session, hunk: specedit.Hunk, first: integer, last: integer }

--- All changes in a buffer that are not decided on, from top to bottom.
---@param bufnr integer
---@return specedit.Open[]
local function open_in(bufnr)
  local found = {}
  for _, session in ipairs(sessions_in(bufnr)) do
    for _, hunk in ipairs(session:open_hunks()) do
      local first, last = reach(session, hunk)
      table.insert(found, { session = session, hunk = hunk, first = first, last = last })
    end
  end
  table.sort(found, function(one, other)
    if one.first ~= other.first then
      return one.first < other.first
    end
    return one.hunk.id < other.hunk.id
  end)
  return found
end

---@return integer
local function cursor_row()
  return vim.api.nvim_win_get_cursor(0)[1] - 1
end

--- The change at a row; lines that come in between two are at both of them.
---@param open specedit.Open[]
---@param row integer
---@return specedit.Open?
local function at_row(open, row)
  for _, each in ipairs(open) do
    if each.first <= row and row <= each.last then
      return each
    end
  end
  for _, each in ipairs(open) do
    if #each.hunk.old == 0 and row == each.first - 1 then
      return each
    end
  end
end

--- The change at the cursor, else the next one, else the first one.
---@return specedit.Open?
local function chosen()
  local open, row = open_in(vim.api.nvim_get_current_buf()), cursor_row()
  local here = at_row(open, row)
  if here then
    return here
  end
  for _, each in ipairs(open) do
    if each.first > row then
      return each
    end
  end
  return open[1]
end

--- The rewrite at the cursor, else that of the next change, else the last one.
---@return specedit.Session?
local function chosen_session()
  local sessions, row = sessions_in(vim.api.nvim_get_current_buf()), cursor_row()
  for _, session in ipairs(sessions) do
    local first, after = session:rows()
    if first and first <= row and row < after then
      return session
    end
  end
  local next_one = chosen()
  return next_one and next_one.session or sessions[#sessions]
end

-- Drawing

---@param bufnr integer
local function draw(bufnr)
  local is_here = bufnr == vim.api.nvim_get_current_buf()
  local here = is_here and at_row(open_in(bufnr), cursor_row()) or nil
  for _, session in ipairs(sessions_in(bufnr)) do
    session:find_hunks()
    active[session] = here and here.session == session and here.hunk or nil
    preview.draw(session, active[session])
  end
end

--- Draw once, however much happens until then.
---@param bufnr integer
local function draw_soon(bufnr)
  if to_draw[bufnr] then
    return
  end
  to_draw[bufnr] = true
  vim.schedule(function()
    to_draw[bufnr] = nil
    if vim.api.nvim_buf_is_loaded(bufnr) then
      draw(bufnr)
    end
  end)
end

-- Beginning and ending

--- Show a session no more.
---@param session specedit.Session
local function close(session)
  preview.clear(session)
  session:close()
  local rest = vim.tbl_filter(function(other)
    return other ~= session
  end, sessions_in(session.bufnr))
  shown[session.bufnr] = #rest > 0 and rest or nil
end

--- Show nothing in a buffer any more, and say why, once.
---@param bufnr integer
---@param why string
local function abandon(bufnr, why)
  local sessions = sessions_in(bufnr)
  for _, session in ipairs(sessions) do
    if session.id then
      server.report(session.client_id, bufnr, 'specedit.cancelRewrite', { session = session.id })
    end
    close(session)
    announce('SpecEditEnd', bufnr, { session = session.id, outcome = 'abandoned' })
  end
  latest[bufnr] = nil
  if #sessions > 0 then
    server.notify(('%s. What it proposed there and you did not accept is gone.'):format(why), WARN)
  end
end

---@param bufnr integer
---@return string
local function name_of(bufnr)
  local name = vim.api.nvim_buf_is_valid(bufnr) and vim.api.nvim_buf_get_name(bufnr) or ''
  return name == '' and 'the buffer' or vim.fs.basename(name)
end

--- Follow a buffer as long as something is shown in it.
---@param bufnr integer
local function follow(bufnr)
  if followed[bufnr] then
    return
  end
  followed[bufnr] = true
  local name = name_of(bufnr)
  local function leave()
    vim.schedule(function()
      abandon(bufnr, ('%s was %s'):format(name, vim.api.nvim_buf_is_loaded(bufnr) and 'read again' or 'closed'))
    end)
  end
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function()
      if not shown[bufnr] then
        followed[bufnr] = nil
        return true
      end
      draw_soon(bufnr)
    end,
    on_reload = leave,
    on_detach = function()
      followed[bufnr] = nil
      leave()
    end,
  })
end

--- Follow what Neovim tells of cursors, windows, progress and clients.
local function watch()
  if is_watching then
    return
  end
  is_watching = true
  local group = vim.api.nvim_create_augroup('specedit.rewrite', {})
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, function(event)
    if not shown[event.buf] then
      return
    end
    local here = at_row(open_in(event.buf), cursor_row())
    for _, session in ipairs(sessions_in(event.buf)) do
      local hunk = here and here.session == session and here.hunk or nil
      if active[session] ~= hunk then
        draw_soon(event.buf)
      end
    end
  end)
  on({ 'WinResized', 'ColorScheme', 'BufWinEnter' }, function()
    for bufnr in pairs(shown) do
      draw_soon(bufnr)
    end
  end)
  on('LspProgress', function(event)
    M.on_progress(event.data)
  end)
  on('LspDetach', function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    local had_it = vim.iter(sessions_in(event.buf)):any(function(session)
      return session.client_id == event.data.client_id
    end)
    -- A buffer that is closed or read again is told of by itself.
    if had_it and (not client or client:is_stopped()) then
      vim.schedule(function()
        abandon(event.buf, 'the language server has ended')
      end)
    end
  end)
end

--- Let go of what is shown where a new rewrite was asked for.
---@param session specedit.Session
local function replace_others(session)
  local row, end_row = session:rows()
  for _, other in ipairs(vim.list_slice(sessions_in(session.bufnr))) do
    local first, after = other:rows()
    local touches = row and first and (row == first or (row < after and first < end_row))
    if other ~= session and touches then
      if other.state == 'ready' then
        server.report(other.client_id, other.bufnr, 'specedit.rejectAll', { session = other.id })
      end
      close(other)
    end
  end
end

---@param answer any
local function is_beginning(answer)
  return type(answer) == 'table'
    and type(answer.session) == 'string'
    and type(answer.version) == 'number'
    and M.is_range(answer.range)
    and type(answer.label) == 'string'
end

--- Have the server begin a rewrite, and show how it goes.
---@param bufnr integer
---@param name string The command.
---@param argument table
---@param instruction string
---@param at_once boolean Whether all changes are made as soon as the model is done.
local function begin(bufnr, name, argument, instruction, at_once)
  local client = server.required_client(bufnr)
  if not client then
    return
  end
  local refusal = apply.why_not(bufnr)
  if refusal then
    server.notify(refusal, ERROR)
    return
  end
  watch()
  tokens = tokens + 1
  argument.workDoneToken = ('specedit.nvim/%d'):format(tokens)
  local session = session_of.new(bufnr, client.id, argument.workDoneToken, instruction, at_once)
  early[client.id] = early[client.id] or { awaited = 0, told = {} }
  early[client.id].awaited = early[client.id].awaited + 1
  server.command(bufnr, name, argument, function(err, answer)
    local waiting = early[client.id]
    waiting.awaited = waiting.awaited - 1
    if waiting.awaited == 0 then
      early[client.id] = nil
    end
    if err or not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    elseif not is_beginning(answer) then
      server.notify('the server answered what this plugin does not understand. Update both.', ERROR)
      return
    end
    shown[bufnr] = shown[bufnr] or {}
    table.insert(shown[bufnr], session)
    follow(bufnr)
    session:begin(answer)
    latest[bufnr] = { client_id = client.id, id = session.id, instruction = instruction, at_once = at_once }
    replace_others(session)
    draw(bufnr)
    for _, tell_session in ipairs(waiting.told[session.id] or {}) do
      tell_session(session)
    end
  end)
end

---@param bufnr integer
---@param range lsp.Range
---@param instruction string
---@param at_once boolean
local function ask(bufnr, range, instruction, at_once)
  history.add(instruction)
  begin(bufnr, 'specedit.rewrite', {
    textDocument = { uri = vim.uri_from_bufnr(bufnr), version = session_of.version(bufnr) },
    range = range,
    instruction = instruction,
    apply = 'client',
  }, instruction, at_once)
end

--- Ask the user for an instruction, then the server for the rewrite.
---@param bufnr integer
---@param range lsp.Range
---@param at_once boolean
local function ask_user(bufnr, range, at_once)
  local client = server.required_client(bufnr)
  if not client then
    return
  end
  local refusal = apply.why_not(bufnr)
  if refusal then
    server.notify(refusal, ERROR)
    return
  end
  local prompt = require('specedit.prompt')
  local retitle = prompt.open(('Rewrite %s'):format(selection.label(range)), range.start.line, function(instruction)
    ask(bufnr, range, instruction, at_once)
  end)
  -- The server knows what the code is called, and says it in its offer to ask for an instruction.
  client:request('textDocument/codeAction', {
    textDocument = { uri = vim.uri_from_bufnr(bufnr) },
    range = range,
    context = { diagnostics = {}, only = { 'refactor.rewrite' } },
  }, function(_, actions)
    for _, action in ipairs(type(actions) == 'table' and actions or {}) do
      if type(action.command) == 'table' and action.command.command == 'specedit.askInstruction' then
        retitle((action.title:gsub(' with an instruction.*', '')))
      end
    end
  end, bufnr)
end

-- What the user commands

--- `:SpecEdit`.
---@param arguments vim.api.keyset.create_user_command.command_args
function M.command(arguments)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.required_client(bufnr)
  if not client then
    return
  end
  local encoding = client.offset_encoding
  local range = arguments.range == 0 and selection.cursor(encoding)
    or selection.lines(bufnr, arguments.line1, arguments.line2, encoding)
  local instruction = vim.trim(arguments.args)
  if instruction == '' then
    ask_user(bufnr, range, arguments.bang)
  else
    ask(bufnr, range, instruction, arguments.bang)
  end
end

--- Ask what to do to the function at the cursor.
function M.at_cursor()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.required_client(bufnr)
  if client then
    ask_user(bufnr, selection.cursor(client.offset_encoding), false)
  end
end

--- Ask what to do to what is selected in visual mode, which ends.
function M.visual()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = server.required_client(bufnr)
  if client then
    local range = selection.visual(client.offset_encoding)
    vim.api.nvim_feedkeys(vim.keycode('<Esc>'), 'nx', false)
    ask_user(bufnr, range, false)
  end
end

--- Whether a rewrite's changes can be decided on; where not, the user is told why.
---@param session specedit.Session?
---@return boolean
local function is_decidable(session)
  if not session then
    server.notify('there is no change to decide on here. Ask for a rewrite with :SpecEdit.', WARN)
    return false
  elseif session.state ~= 'ready' then
    local cancel = keys.of(session.bufnr, 'cancel', 'SpecEditCancel')
    server.notify(('the model is still writing. Wait until it is done, or stop it with %s.'):format(cancel), WARN)
    return false
  end
  return true
end

--- Changes were decided on: show what is left.
---@param session specedit.Session
---@param hunks specedit.Hunk[]
local function decided(session, hunks)
  for _, hunk in ipairs(hunks) do
    session:drop(hunk.id)
  end
  if vim.tbl_isempty(session.hunks) then
    close(session)
    announce('SpecEditEnd', session.bufnr, { session = session.id, outcome = 'decided' })
  end
  announce('SpecEditHunks', session.bufnr, { session = session.id, count = vim.tbl_count(session.hunks) })
  draw(session.bufnr)
end

--- Make changes in the text, and tell the server. Those that do not fit are left as they are, and the user is told.
---@param session specedit.Session
---@param hunks specedit.Hunk[]
local function accept(session, hunks)
  local refusal = apply.why_not(session.bufnr)
  if refusal then
    server.notify(refusal, ERROR)
    return
  end
  local is_all = #hunks == vim.tbl_count(session.hunks)
  local made, unfit = apply.make(session, hunks)
  if is_all and #unfit == 0 then
    server.report(session.client_id, session.bufnr, 'specedit.acceptAll', { session = session.id })
  else
    for _, hunk in ipairs(made) do
      server.report(session.client_id, session.bufnr, 'specedit.acceptHunk', { session = session.id, id = hunk.id })
    end
  end
  decided(session, made)
  if #unfit > 0 then
    local fix = 'Undo what you changed there, or reject it.'
    local count = #unfit == 1 and '1 change was not made' or ('%d changes were not made'):format(#unfit)
    server.notify(('%s: the text there is another now. %s'):format(count, fix), WARN)
  end
end

--- Accept the change at the cursor, else the next one.
function M.accept()
  local one = chosen()
  if is_decidable(one and one.session or chosen_session()) and one then
    accept(one.session, { one.hunk })
  end
end

--- Reject the change at the cursor, else the next one.
function M.reject()
  local one = chosen()
  if is_decidable(one and one.session or chosen_session()) and one then
    local argument = { session = one.session.id, id = one.hunk.id }
    server.report(one.session.client_id, one.session.bufnr, 'specedit.rejectHunk', argument)
    decided(one.session, { one.hunk })
  end
end

--- Accept all changes of the rewrite at the cursor, else of the next one, as one step to undo.
function M.accept_all()
  local session = chosen_session()
  if session and is_decidable(session) then
    accept(session, session:open_hunks())
  elseif not session then
    is_decidable(nil)
  end
end

---@param session specedit.Session
local function reject_all(session)
  server.report(session.client_id, session.bufnr, 'specedit.rejectAll', { session = session.id })
  decided(session, session:open_hunks())
end

--- Reject all changes of the rewrite at the cursor, else of the next one.
function M.reject_all()
  local session = chosen_session()
  if is_decidable(session) and session then
    reject_all(session)
  end
end

--- Put the cursor on the change that lies so many further on, beginning anew at the other end.
---@param step 1|-1
local function go(step)
  local open, row = open_in(vim.api.nvim_get_current_buf()), cursor_row()
  if #open == 0 then
    server.notify('there are no changes here. Ask for a rewrite with :SpecEdit.', WARN)
    return
  end
  local target = step == 1 and 1 or #open
  for number = target, step == 1 and #open or 1, step do
    local first = open[number].first
    if (step == 1 and first > row) or (step == -1 and first < row) then
      target = number
      break
    end
  end
  vim.cmd.normal({ "m'", bang = true })
  vim.api.nvim_win_set_cursor(0, { open[target].first + 1, 0 })
  vim.cmd.normal({ '^zv', bang = true })
  vim.api.nvim_echo({ { ('specedit: change %d of %d'):format(target, #open) } }, false, {})
end

--- Go to the next change; after the last one comes the first.
function M.next()
  go(1)
end

--- Go to the change before; before the first one comes the last.
function M.previous()
  go(-1)
end

--- Stop the rewrite at the cursor, else the last one that was begun; of one that is done, reject all changes.
function M.cancel()
  local session = chosen_session()
  if not session then
    server.notify('there is nothing to cancel here.', WARN)
  elseif session.state == 'ready' then
    reject_all(session)
  else
    server.report(session.client_id, session.bufnr, 'specedit.cancelRewrite', { session = session.id })
  end
end

--- Ask for another answer to the rewrite at the cursor, else to the last one in the buffer.
function M.regenerate()
  local bufnr = vim.api.nvim_get_current_buf()
  local again = chosen_session() or latest[bufnr]
  if not again then
    server.notify('there was no rewrite here to ask for again. Ask for one with :SpecEdit.', WARN)
    return
  end
  begin(bufnr, 'specedit.regenerate', { session = again.id }, again.instruction, again.at_once)
end

-- What the server tells

---@param range any
---@return boolean
function M.is_range(range)
  local function is_position(position)
    return type(position) == 'table' and type(position.line) == 'number' and type(position.character) == 'number'
  end
  return type(range) == 'table' and is_position(range.start) and is_position(range['end'])
end

--- What each notification must hold.
local HOLDS = {
  hunk = { id = 'number', version = 'number', oldText = 'string', newText = 'string' },
  hunk_removed = { id = 'number' },
  rebased = { version = 'number', lines = 'number' },
  ends = { outcome = 'string', reason = 'string', fix = 'string' },
}

--- Hand a notification to its session, if it is one; before the answer that says which one that is, it waits.
---@param params any
---@param ctx lsp.HandlerContext
---@param holds table<string, type>
---@param run fun(session: specedit.Session, params: table)
local function deliver(params, ctx, holds, run)
  if type(params) ~= 'table' or type(params.session) ~= 'string' then
    return
  end
  for name, kind in pairs(holds) do
    if type(params[name]) ~= kind then
      return
    end
  end
  local session = find(ctx.client_id, params.session)
  if session then
    run(session, params)
    return
  end
  local waiting = early[ctx.client_id]
  if waiting then
    local told = waiting.told[params.session] or {}
    waiting.told[params.session] = told
    table.insert(told, function(begun)
      if find(ctx.client_id, params.session) then
        run(begun, params)
      end
    end)
  end
end

--- `specedit/hunk`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_hunk(params, ctx)
  deliver(params, ctx, HOLDS.hunk, function(session, told)
    if M.is_range(told.range) then
      session:propose(told.id, told.range, told.oldText, told.newText)
      draw_soon(session.bufnr)
      announce('SpecEditHunks', session.bufnr, { session = session.id, count = vim.tbl_count(session.hunks) })
    end
  end)
end

--- `specedit/hunkRemoved`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_hunk_removed(params, ctx)
  deliver(params, ctx, HOLDS.hunk_removed, function(session, told)
    session:drop(told.id)
    draw_soon(session.bufnr)
  end)
end

--- `specedit/rebased`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_rebased(params, ctx)
  deliver(params, ctx, HOLDS.rebased, function(session, told)
    session:rebase(told.version, told.lines)
    draw_soon(session.bufnr)
  end)
end

---@param session specedit.Session
local function on_ready(session)
  session.state = 'ready'
  session:find_hunks()
  local count = vim.tbl_count(session.hunks)
  announce('SpecEditHunks', session.bufnr, { session = session.id, count = count })
  if session.at_once then
    accept(session, session:open_hunks())
    server.notify(('%s in %s. Undo takes all of it back.'):format(changes(count), session.label))
    return
  end
  draw_soon(session.bufnr)
  local bufnr = session.bufnr
  local accepts = keys.of(bufnr, 'accept-all', 'SpecEditAcceptAll')
  local rejects = keys.of(bufnr, 'reject-all', 'SpecEditRejectAll')
  tell(('%s in %s'):format(changes(count), session.label), (': accept all with %s, reject all with %s'):format(accepts, rejects))
end

--- `specedit/rewriteEnd`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_end(params, ctx)
  deliver(params, ctx, HOLDS.ends, function(session, told)
    if told.outcome == 'ready' then
      on_ready(session)
    else
      close(session)
      local why = told.fix == '' and told.reason or ('%s; %s'):format(told.reason, told.fix)
      if told.outcome == 'cancelled' then
        server.notify(('%s stays as it is: %s'):format(session.label, why))
      else
        server.notify(('%s was not rewritten: %s'):format(session.label, why), WARN)
      end
    end
    announce('SpecEditEnd', session.bufnr, { session = session.id, outcome = told.outcome })
  end)
end

--- Progress of any client's; that of a rewrite is shown with it.
---@param data { client_id: integer, params: lsp.ProgressParams }
function M.on_progress(data)
  local value = data.params.value
  if type(value) ~= 'table' or type(value.percentage) ~= 'number' then
    return
  end
  for bufnr, sessions in pairs(shown) do
    for _, session in ipairs(sessions) do
      if session.client_id == data.client_id and session.token == data.params.token then
        session.percent = value.percentage
        draw_soon(bufnr)
      end
    end
  end
end

--- A code action of the server's: it is previewed like any other rewrite.
---@param command lsp.Command
---@param ctx lsp.HandlerContext
function M.on_rewrite(command, ctx)
  local argument = vim.deepcopy(command.arguments[1])
  argument.apply = 'client'
  begin(ctx.bufnr, 'specedit.rewrite', argument, argument.instruction, false)
end

--- The code action that asks for an instruction.
---@param command lsp.Command
---@param ctx lsp.HandlerContext
function M.on_ask_instruction(command, ctx)
  ask_user(ctx.bufnr, command.arguments[1].range, false)
end

return M
