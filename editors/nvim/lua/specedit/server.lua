--- The language server as the plugin calls it, and how users are told things.
local M = {}

local NAME = 'specedit'

--- Tell the user something. It never waits for a key, which whoever types would press for something else.
---@param message string
---@param level? integer One of vim.log.levels.
function M.notify(message, level)
  require('specedit.notice').show('specedit: ' .. message, level or vim.log.levels.INFO)
end

--- Tell that the language server has ended, unless it was asked to.
---@param code integer
---@param signal integer
---@param client_id integer
function M.on_exit(code, signal, client_id)
  if code == 0 and (signal == 0 or signal == 15) then
    return
  end
  vim.schedule(function()
    if vim.v.exiting == vim.NIL then
      require('specedit.surroundings').forget(client_id)
      -- As short as this it fits beside what Neovim itself says then.
      M.notify('the server has ended. :SpecEditRestart starts it anew.', vim.log.levels.ERROR)
    end
  end)
end

--- The client of a buffer, once the server has answered; nil where there is none.
---@param bufnr integer
---@return vim.lsp.Client?
function M.client(bufnr)
  return vim.lsp.get_clients({ bufnr = bufnr, name = NAME })[1]
end

--- Why the server can't be started, and what to do about it; nil where it can, as far as can be told.
---@return string?
function M.why_not_startable()
  local config = vim.lsp.config[NAME]
  local program = config and type(config.cmd) == 'table' and config.cmd[1]
  if program and vim.fn.executable(program) == 0 then
    return (
      "the program '%s' was not found. Install it where your PATH leads (in a checkout: pip install -e '.[local]'), "
      .. "or name it: require('specedit').setup({ cmd = { '/path/to/specedit', 'lsp' } })."
    ):format(program)
  end
end

--- Why there is no client for a buffer, and what to do about it.
---@param bufnr integer
---@return string
function M.why_not_attached(bufnr)
  local buffer = vim.bo[bufnr]
  local config = vim.lsp.config[NAME]
  if buffer.buftype ~= '' then
    return ("this buffer is no file ('buftype' is %s). Open the code as a file."):format(buffer.buftype)
  elseif vim.lsp.is_enabled and not vim.lsp.is_enabled(NAME) then
    return "it is not switched on. Put require('specedit').setup() or vim.lsp.enable('specedit') in your init.lua."
  elseif buffer.filetype == '' then
    return 'this buffer has no file type, so no language server is started for it. Save it under a name, or :setfiletype.'
  elseif config.filetypes and not vim.list_contains(config.filetypes, buffer.filetype) then
    return ("file type %s is not among 'filetypes' in its set-up. Add it there."):format(buffer.filetype)
  end
  local missing = M.why_not_startable()
  if missing then
    return missing
  elseif #vim.lsp.get_clients({ name = NAME, _uninitialized = true }) > 0 then
    return 'the server is starting. Try again in a moment.'
  end
  return 'no server runs for this buffer. Start it with :SpecEditRestart; :checkhealth specedit looks for the reason.'
end

--- The client of a buffer; where there is none, the user is told why.
---@param bufnr integer
---@return vim.lsp.Client?
function M.required_client(bufnr)
  local client = M.client(bufnr)
  if not client then
    M.notify(M.why_not_attached(bufnr), vim.log.levels.ERROR)
  end
  return client
end

--- Have the server run a command on the text as it is now. A failure is told to the user in the server's words.
---@param bufnr integer
---@param name string
---@param argument table?
---@param callback? fun(err: lsp.ResponseError?, result: any)
---@return boolean # Whether it was asked.
function M.command(bufnr, name, argument, callback)
  local client = M.required_client(bufnr)
  if not client then
    return false
  end
  local params = { command = name, arguments = { argument } }
  local function answered(err, result)
    if err then
      M.notify(err.message, vim.log.levels.ERROR)
    end
    if callback then
      callback(err, result)
    end
  end
  -- With a real number, changes that wait to be told are told first.
  return (client:request('workspace/executeCommand', params, answered, bufnr))
end

--- Tell the server what became of a change. That it does not know the rewrite any more is of no concern to the user.
---@param client_id integer
---@param bufnr integer
---@param name string
---@param argument table
function M.report(client_id, bufnr, name, argument)
  local client = vim.lsp.get_client_by_id(client_id)
  if client and not client:is_stopped() then
    client:request('workspace/executeCommand', { command = name, arguments = { argument } }, function() end, bufnr)
  end
end

--- The buffer to ask for what concerns no buffer: this one, else any that the server is attached to.
---@return integer
local function any_buffer()
  local bufnr = vim.api.nvim_get_current_buf()
  if M.client(bufnr) then
    return bufnr
  end
  local client = vim.lsp.get_clients({ name = NAME })[1]
  return client and next(client.attached_buffers) or bufnr
end

--- End the shared engine and start it anew; the language server too, where it has ended.
function M.restart()
  local is_on = not vim.lsp.is_enabled or vim.lsp.is_enabled(NAME)
  if is_on and not M.why_not_startable() and #vim.lsp.get_clients({ name = NAME, _uninitialized = true }) == 0 then
    -- Looks anew at all buffers that are open.
    vim.lsp.enable(NAME)
    M.notify('the language server was started anew.')
    return
  end
  M.command(any_buffer(), 'specedit.restartEngine', nil, function(err)
    if not err then
      M.notify('the engine was started anew.')
    end
  end)
end

--- Show what was shown and taken, and what it gained.
function M.statistics()
  M.command(any_buffer(), 'specedit.statistics', nil, function(err, result)
    if not err then
      M.notify(type(result) == 'table' and result.summary or vim.inspect(result))
    end
  end)
end

---@return string
local function log_file()
  local configured = require('specedit.config').options.log_file
  if configured then
    return vim.fs.normalize(configured)
  elseif vim.fn.has('mac') == 1 then
    return vim.fs.normalize('~/Library/Logs/specedit/lsp.log')
  end
  return vim.fs.joinpath(vim.env.XDG_STATE_HOME or vim.fs.normalize('~/.local/state'), 'specedit/log/lsp.log')
end

--- Open the server's log at its end.
function M.open_log()
  local file = log_file()
  if vim.fn.filereadable(file) == 0 then
    local neovims = vim.lsp.log.get_filename()
    M.notify(('there is no log at %s yet. Neovim keeps one of its own: %s'):format(file, neovims), vim.log.levels.WARN)
    return
  end
  vim.cmd.view(vim.fn.fnameescape(file))
  vim.cmd.normal({ 'G', bang = true })
end

return M
