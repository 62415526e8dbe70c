-- Follows a buffer beside the plugin, by what Neovim tells of its lines alone: each line has a number of its own, which it
-- loses when it is changed. So it knows where a change of the server's belongs, and what making one did to other lines.
local M = {}

local bufnr, ids, last_id
local texts -- by version: the lines' numbers
local states -- by state of the undo tree: the lines and their numbers
local hunks -- by session, then by id: as the server told them

local function lines()
  return vim.api.nvim_buf_get_lines(bufnr, 0, -1, true)
end

local function fresh(count)
  local made = {}
  for i = 1, count do
    last_id = last_id + 1
    made[i] = last_id
  end
  return made
end

local function split(text)
  local line_end = ({ unix = '\n', dos = '\r\n', mac = '\r' })[vim.bo[bufnr].fileformat]
  local parts = vim.split(text, line_end, { plain = true })
  if parts[#parts] == '' then
    parts[#parts] = nil
  end
  return parts
end

-- The lines that go and come by a change, and from which line on. Lines that it leaves at its beginning and end are not
-- in it: the user may have changed them.
local function parts_of(told)
  local start = told.range.start.line + (told.range.start.character > 0 and 1 or 0)
  local old, new = split(told.oldText), split(told.newText)
  while old[1] and old[1] == new[1] do
    table.remove(old, 1)
    table.remove(new, 1)
    start = start + 1
  end
  while old[1] and old[#old] == new[#new] do
    old[#old], new[#new] = nil, nil
  end
  return start, old, new
end

local function spliced(list, first, last, new)
  local result = vim.list_slice(list, 1, first)
  vim.list_extend(result, new)
  return vim.list_extend(result, list, last + 1, #list)
end

--- The text as it is now is the one that the server is told.
function M.tell_version()
  texts[vim.lsp.util.buf_versions[bufnr]] = ids
  texts[vim.api.nvim_buf_get_changedtick(bufnr)] = ids
end

--- Follow the current buffer from now on.
function M.start()
  bufnr, last_id, texts, states, hunks = vim.api.nvim_get_current_buf(), 0, {}, {}, {}
  ids = fresh(vim.api.nvim_buf_line_count(bufnr))
  M.tell_version()
  local own = bufnr
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, tick, first, last, new_last)
      if own ~= bufnr then
        return true
      end
      ids = spliced(ids, first, last, fresh(new_last - first))
      texts[tick] = ids
    end,
    on_changedtick = function(_, _, tick)
      texts[tick] = ids
    end,
    on_reload = function()
      ids = fresh(vim.api.nvim_buf_line_count(bufnr))
      M.tell_version()
      vim.schedule(M.tell_version)
    end,
  })
  local client = vim.lsp.get_clients({ name = 'specedit', bufnr = bufnr })[1]
  if not client.handlers.is_watched then
    client.handlers.is_watched = true
    local told = client.handlers['specedit/hunk']
    client.handlers['specedit/hunk'] = function(err, params, ctx)
      hunks[params.session] = hunks[params.session] or {}
      hunks[params.session][params.id] = params
      return told(err, params, ctx)
    end
  end
  M.keep()
end

--- A line was moved, and a change that is about it moved with it: nothing is known of places any more.
function M.moved()
  ids = fresh(#ids)
  texts, states = {}, {}
end

--- Remember which lines these are, for when they come back by undo or redo.
function M.keep()
  local state = vim.fn.undotree(bufnr).seq_cur
  local known = states[state]
  if known and vim.deep_equal(known.lines, lines()) then
    ids = known.ids
  else
    states[state] = { lines = lines(), ids = ids }
  end
  M.tell_version()
end

-- Where of the lines that the server meant some are still there: a change at `first`, up to before `last`, fits these.
local function belongs(told, first, last)
  local meant, at = texts[told.version], {}
  if not meant then
    return true
  end
  for row, id in ipairs(ids) do
    at[id] = row - 1
  end
  local start, old = parts_of(told)
  local stop = start + #old
  for row = 0, #meant - 1 do
    local now = at[meant[row + 1]]
    if now then
      local fine
      if row < start then
        fine = now < first
      elseif row < stop then
        fine = first <= now and now < last
      else
        fine = now >= last
      end
      if not fine then
        return false, ('line %d of version %d is at %d'):format(row, told.version, now)
      end
    end
  end
  return true
end

--- All places in `before` where making the change gives `after`.
local function places(told, before, after)
  local found, _, old, new = {}, parts_of(told)
  for first = 0, #before - #old do
    if vim.deep_equal(vim.list_slice(before, first + 1, first + #old), old) then
      local made = spliced(before, first, first + #old, new)
      if vim.deep_equal(#made > 0 and made or { '' }, after) then
        table.insert(found, first)
      end
    end
  end
  if #old == 0 and #before == 1 and before[1] == '' and vim.deep_equal(after, new) then
    table.insert(found, 0)
  end
  return found, #old
end

--- Accept one change by the plugin; what was wrong with that, in words, else nil.
function M.accept()
  local before, ids_before, told_before = lines(), ids, #_G.notified
  local one = require('specedit.sessions').chosen()
  require('specedit.rewrite').accept()
  local after = lines()
  if vim.deep_equal(before, after) then
    if #_G.notified == told_before and one and one.session.state == 'ready' and one.session.hunks[one.hunk.id] then
      return 'nothing was changed, and nothing told'
    end
    return nil, 'refused'
  elseif not one then
    return 'the text was changed without a change'
  end
  local told = hunks[one.session.id][one.hunk.id]
  local found, height = places(told, before, after)
  ids, ids_before = ids_before, ids
  local why = 'the text is not that with the change made'
  for _, first in ipairs(found) do
    local fine, problem = belongs(told, first, first + height)
    if fine then
      why = nil
      break
    end
    why = problem
  end
  ids = ids_before
  if why then
    return ('%s\n%s'):format(why, vim.inspect({ told = told, before = before, after = after }))
  end
  return nil, 'made'
end

--- Accept all by the plugin; lines that no change is about must all be there afterwards, in their order.
function M.accept_all()
  local before, ids_before = lines(), ids
  local session = require('specedit.sessions').chosen_session()
  local open, told, told_before = vim.tbl_keys(session and session.hunks or {}), {}, #_G.notified
  require('specedit.rewrite').accept_all()
  for _, id in ipairs(open) do
    if not session.hunks[id] then
      table.insert(told, hunks[session.id][id])
    end
  end
  if session and next(session.hunks) and #_G.notified == told_before then
    return 'not all was made, and nothing told'
  end
  local after = lines()
  if vim.deep_equal(before, after) then
    return nil, 'refused'
  elseif not session then
    return 'the text was changed without a rewrite'
  end
  local texts_of = {}
  for row, id in ipairs(ids_before) do
    texts_of[id] = before[row]
  end
  local going, coming = {}, {}
  local all_stand, expected, at = true, vim.list_slice(before), {}
  for row, id in ipairs(ids_before) do
    at[id] = row - 1
  end
  table.sort(told, function(one, other)
    return one.range.start.line > other.range.start.line
  end)
  for _, one in ipairs(told) do
    local start, old, new = parts_of(one)
    for _, line in ipairs(old) do
      going[line] = (going[line] or 0) + 1
    end
    for _, line in ipairs(new) do
      coming[line] = (coming[line] or 0) + 1
    end
    local meant = texts[one.version]
    local first = meant and (at[meant[start + 1]] or (start == #meant and #old == 0 and #ids_before)) or nil
    if #old == 0 and first and start > 0 and at[meant[start]] ~= first - 1 then
      first = nil
    end
    for i = 0, #old - 1 do
      if not first or at[meant[start + i + 1]] ~= first + i then
        all_stand = false
      end
    end
    all_stand = all_stand and first ~= nil
    if all_stand then
      expected = spliced(expected, first, first + #old, new)
    end
  end
  local function report(why)
    return ('%s\n%s'):format(why, vim.inspect({ told = told, before = before, after = after, expected = expected }))
  end
  if all_stand and not vim.deep_equal(#expected > 0 and expected or { '' }, after) then
    return report('all changes stand, and making them all gives another text')
  end
  for _, line in ipairs(before) do
    going[line], coming[line] = (going[line] or 0), (coming[line] or 0)
  end
  local count = {}
  for _, line in ipairs(before) do
    count[line] = (count[line] or 0) + 1
  end
  for _, line in ipairs(after) do
    count[line] = (count[line] or 0) - 1
  end
  for line, lost in pairs(count) do
    if lost > (going[line] or 0) and not (line == '' and #before == 1) then
      return report(('%q is lost'):format(line))
    elseif -lost > (coming[line] or 0) and not (line == '' and #after == 1) then
      return report(('%q came from nowhere'):format(line))
    end
  end
  return nil, 'made'
end

return M
