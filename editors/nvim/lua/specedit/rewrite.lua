--- Rewriting: what the user commands, and what the server tells.
local apply = require('specedit.apply')
local history = require('specedit.history')
local inbox = require('specedit.inbox')
local keys = require('specedit.keys')
local line_ends = require('specedit.line_ends')
local redraw = require('specedit.redraw')
local selection = require('specedit.selection')
local server = require('specedit.server')
local session_of = require('specedit.session')
local sessions = require('specedit.sessions')
local surroundings = require('specedit.surroundings')

local M = {}

local WARN, ERROR = vim.log.levels.WARN, vim.log.levels.ERROR

--- By buffer, the last one that was begun, which can be asked for again.
---@type table<integer, { client_id: integer, id: string, instruction: string, at_once: boolean }>
local latest = {}
local tokens = 0

---@param count integer
local function changes(count)
  return ('%d %s'):format(count, count == 1 and 'change' or 'changes')
end

--- Tell the user something that fits on one line, without what may be left out where it does not.
---@param message string
---@param rest string
local function tell(message, rest)
  local whole = message .. rest
  server.notify(vim.fn.strdisplaywidth(whole) + #'specedit: ' < vim.v.echospace and whole or message)
end

-- Beginning and ending

--- Let go of what is shown where a new rewrite was asked for.
---@param session specedit.Session
local function replace_others(session)
  local row, end_row = session:rows()
  for _, other in ipairs(vim.list_slice(sessions.of(session.bufnr))) do
    local first, after = other:rows()
    local touches = row and first and (row == first or (row < after and first < end_row))
    if other ~= session and touches then
      if other.state == 'ready' then
        server.report(other.client_id, other.bufnr, 'specedit.rejectAll', { session = other.id })
      end
      sessions.remove(other)
    end
  end
end

---@param range any
---@return boolean
local function is_range(range)
  local function is_position(position)
    return type(position) == 'table' and type(position.line) == 'number' and type(position.character) == 'number'
  end
  return type(range) == 'table' and is_position(range.start) and is_position(range['end'])
end

---@param answer any
local function is_beginning(answer)
  return type(answer) == 'table'
    and type(answer.session) == 'string'
    and type(answer.version) == 'number'
    and is_range(answer.range)
    and type(answer.label) == 'string'
end

--- The client of a buffer whose text can be changed; else the user is told why it can't be.
---@param bufnr integer
---@return vim.lsp.Client?
local function client_for(bufnr)
  local client = server.required_client(bufnr)
  local refusal = client and apply.why_not(bufnr)
  if refusal then
    server.notify(refusal, ERROR)
    return nil
  elseif client then
    line_ends.mend(client, bufnr)
  end
  return client
end

--- Have the server begin a rewrite, and show how it goes.
---@param bufnr integer
---@param name string The command.
---@param argument table
---@param instruction string
---@param at_once boolean Whether all changes are made as soon as the model is done.
local function begin(bufnr, name, argument, instruction, at_once)
  local client = client_for(bufnr)
  if not client then
    return
  end
  tokens = tokens + 1
  argument.workDoneToken = ('specedit.nvim/%d'):format(tokens)
  local session = session_of.new(bufnr, client.id, argument.workDoneToken, instruction, at_once)
  inbox.await(client.id)
  server.command(bufnr, name, argument, function(err, answer)
    local hand_over = inbox.answered(client.id)
    if err or not vim.api.nvim_buf_is_loaded(bufnr) then
      return
    elseif not is_beginning(answer) then
      server.notify('the server answered what this plugin does not understand. Update both.', ERROR)
      return
    end
    sessions.add(session)
    surroundings.follow(bufnr)
    session:begin(answer)
    latest[bufnr] = { client_id = client.id, id = session.id, instruction = instruction, at_once = at_once }
    replace_others(session)
    redraw.now(bufnr)
    hand_over(session)
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
  local client = client_for(bufnr)
  if not client then
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
    sessions.remove(session)
    -- What was offered last is there no more.
    vim.api.nvim_echo({ { '' } }, false, {})
    surroundings.announce('SpecEditEnd', session.bufnr, { session = session.id, outcome = 'decided' })
  end
  surroundings.announce('SpecEditHunks', session.bufnr, { session = session.id, count = vim.tbl_count(session.hunks) })
  redraw.now(session.bufnr)
end

--- Make changes in the text, and tell the server. Those that do not fit are left as they are, and the user is told.
---@param session specedit.Session
---@param hunks specedit.Hunk[]
---@return integer # How many were made.
local function accept(session, hunks)
  local refusal = apply.why_not(session.bufnr)
  if refusal then
    server.notify(refusal, ERROR)
    return 0
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
  return #made
end

--- Accept the change at the cursor, else the next one.
function M.accept()
  local one = sessions.chosen()
  if is_decidable(one and one.session or sessions.chosen_session()) and one then
    accept(one.session, { one.hunk })
  end
end

--- Reject the change at the cursor, else the next one.
function M.reject()
  local one = sessions.chosen()
  if is_decidable(one and one.session or sessions.chosen_session()) and one then
    local argument = { session = one.session.id, id = one.hunk.id }
    server.report(one.session.client_id, one.session.bufnr, 'specedit.rejectHunk', argument)
    decided(one.session, { one.hunk })
  end
end

--- Accept all changes of the rewrite at the cursor, else of the next one, as one step to undo.
function M.accept_all()
  local session = sessions.chosen_session()
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
  local session = sessions.chosen_session()
  if is_decidable(session) and session then
    reject_all(session)
  end
end

--- Put the cursor on the change that lies so many further on, beginning anew at the other end.
---@param step 1|-1
local function go(step)
  local open, row = sessions.open_in(vim.api.nvim_get_current_buf()), sessions.cursor_row()
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
  local session = sessions.chosen_session()
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
  local again = sessions.chosen_session() or latest[bufnr]
  if not again then
    server.notify('there was no rewrite here to ask for again. Ask for one with :SpecEdit.', WARN)
    return
  end
  begin(bufnr, 'specedit.regenerate', { session = again.id }, again.instruction, again.at_once)
end

-- What the server tells

--- What each notification must hold.
local HOLDS = {
  hunk = { id = 'number', version = 'number', oldText = 'string', newText = 'string' },
  hunk_removed = { id = 'number' },
  rebased = { version = 'number', lines = 'number' },
  ends = { outcome = 'string', reason = 'string', fix = 'string' },
}

--- `specedit/hunk`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_hunk(params, ctx)
  inbox.deliver(params, ctx, HOLDS.hunk, function(session, told)
    if is_range(told.range) then
      session:propose(told.id, told.range, told.oldText, told.newText)
      redraw.soon(session.bufnr)
      surroundings.announce('SpecEditHunks', session.bufnr, { session = session.id, count = vim.tbl_count(session.hunks) })
    end
  end)
end

--- `specedit/hunkRemoved`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_hunk_removed(params, ctx)
  inbox.deliver(params, ctx, HOLDS.hunk_removed, function(session, told)
    session:drop(told.id)
    redraw.soon(session.bufnr)
  end)
end

--- `specedit/rebased`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_rebased(params, ctx)
  inbox.deliver(params, ctx, HOLDS.rebased, function(session, told)
    session:rebase(told.version, told.lines)
    redraw.soon(session.bufnr)
  end)
end

---@param session specedit.Session
local function on_ready(session)
  session.state = 'ready'
  session:find_hunks()
  local count = vim.tbl_count(session.hunks)
  surroundings.announce('SpecEditHunks', session.bufnr, { session = session.id, count = count })
  if session.at_once then
    local made = accept(session, session:open_hunks())
    if made > 0 then
      server.notify(('%s in %s. Undo takes all of it back.'):format(changes(made), session.label))
    end
    return
  end
  redraw.soon(session.bufnr)
  local bufnr = session.bufnr
  local accepts = keys.of(bufnr, 'accept-all', 'SpecEditAcceptAll')
  local rejects = keys.of(bufnr, 'reject-all', 'SpecEditRejectAll')
  tell(('%s in %s'):format(changes(count), session.label), (': accept all with %s, reject all with %s'):format(accepts, rejects))
end

--- `specedit/rewriteEnd`.
---@param params any
---@param ctx lsp.HandlerContext
function M.on_end(params, ctx)
  inbox.deliver(params, ctx, HOLDS.ends, function(session, told)
    if told.outcome == 'ready' then
      on_ready(session)
    else
      sessions.remove(session)
      local why = told.fix == '' and told.reason or ('%s; %s'):format(told.reason, told.fix)
      if told.outcome == 'cancelled' then
        server.notify(('%s stays as it is: %s'):format(session.label, why))
      else
        server.notify(('%s: not rewritten, %s'):format(session.label, why), WARN)
      end
    end
    surroundings.announce('SpecEditEnd', session.bufnr, { session = session.id, outcome = told.outcome })
  end)
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
