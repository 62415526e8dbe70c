--- What happens around rewrites: text that changes, buffers that close, servers that end, cursors and windows.
local redraw = require('specedit.redraw')
local server = require('specedit.server')
local sessions = require('specedit.sessions')

local M = {}

--- Buffers whose changes are followed.
---@type table<integer, true>
local followed = {}
local is_watching = false

--- Have the user's own autocommands know.
---@param pattern string
---@param bufnr integer
---@param data table
function M.announce(pattern, bufnr, data)
  data.bufnr = bufnr
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, modeline = false, data = data })
end

--- Show nothing in a buffer any more, and say why, once.
---@param bufnr integer
---@param why? string Nil where the user is told already.
function M.abandon(bufnr, why)
  local gone = sessions.of(bufnr)
  for _, session in ipairs(gone) do
    if session.id then
      server.report(session.client_id, bufnr, 'specedit.cancelRewrite', { session = session.id })
    end
    sessions.remove(session)
    M.announce('SpecEditEnd', bufnr, { session = session.id, outcome = 'abandoned' })
  end
  if why and #gone > 0 then
    server.notify(('%s. What it proposed there and you did not accept is gone.'):format(why), vim.log.levels.WARN)
  end
end

--- Show nothing of a language server's any more.
---@param client_id integer
function M.forget(client_id)
  for _, bufnr in ipairs(sessions.buffers()) do
    if sessions.of(bufnr)[1].client_id == client_id then
      M.abandon(bufnr)
    end
  end
end

---@param bufnr integer
---@return string
local function name_of(bufnr)
  local name = vim.api.nvim_buf_is_valid(bufnr) and vim.api.nvim_buf_get_name(bufnr) or ''
  return name == '' and 'the buffer' or vim.fs.basename(name)
end

--- Progress of any client's; that of a rewrite is shown with it.
---@param client_id integer
---@param params lsp.ProgressParams
local function on_progress(client_id, params)
  local percent = type(params.value) == 'table' and params.value.percentage
  for _, bufnr in ipairs(sessions.buffers()) do
    for _, session in ipairs(sessions.of(bufnr)) do
      if type(percent) == 'number' and session.client_id == client_id and session.token == params.token then
        session.percent = percent
        redraw.soon(bufnr)
      end
    end
  end
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
    redraw.follow_cursor(event.buf)
  end)
  on({ 'WinResized', 'ColorScheme', 'BufWinEnter' }, function()
    vim.iter(sessions.buffers()):each(redraw.soon)
  end)
  on('LspProgress', function(event)
    on_progress(event.data.client_id, event.data.params)
  end)
  on('LspDetach', function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    local had_it = vim.iter(sessions.of(event.buf)):any(function(session)
      return session.client_id == event.data.client_id
    end)
    -- A buffer that is closed or read again is told of by itself.
    if had_it and (not client or client:is_stopped()) then
      vim.schedule(function()
        M.abandon(event.buf, 'the language server has ended')
      end)
    end
  end)
end

--- Follow a buffer as long as something is shown in it.
---@param bufnr integer
function M.follow(bufnr)
  if followed[bufnr] then
    return
  end
  followed[bufnr] = true
  watch()
  local name = name_of(bufnr)
  local function leave()
    vim.schedule(function()
      M.abandon(bufnr, ('%s was %s'):format(name, vim.api.nvim_buf_is_loaded(bufnr) and 'read again' or 'closed'))
    end)
  end
  vim.api.nvim_buf_attach(bufnr, false, {
    on_lines = function()
      if #sessions.of(bufnr) == 0 then
        followed[bufnr] = nil
        return true
      end
      redraw.soon(bufnr)
    end,
    on_reload = leave,
    on_detach = function()
      followed[bufnr] = nil
      leave()
    end,
  })
end

return M
