--- Completions at the cursor: what keys and commands do with them.
local part = require('specedit.inline.part')

local M = {}

local is_enabled = true

-- What is below: Neovim's own, or ours where it has none.
local function backend()
  local native = require('specedit.inline.native')
  return native.is_available() and native or require('specedit.inline.fallback')
end

---@return fun(): integer?, vim.lsp.Client?
local function attached()
  return coroutine.wrap(function()
    for _, client in ipairs(vim.lsp.get_clients({ name = 'specedit' })) do
      for bufnr in pairs(client.attached_buffers) do
        coroutine.yield(bufnr, client)
      end
    end
  end)
end

---@param enable boolean
local function switch(enable)
  is_enabled = enable
  for bufnr, client in attached() do
    if enable then
      M.attach(client, bufnr)
    else
      backend().detach(client, bufnr)
    end
  end
end

--- Take the options under `inline`.
---@param options specedit.InlineOptions
function M.setup(options)
  switch(options.enabled ~= false)
end

--- Complete in a buffer that the server is attached to, unless that is switched off.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  if not is_enabled or vim.bo[bufnr].buftype ~= '' or not client.server_capabilities.inlineCompletionProvider then
    return
  end
  backend().attach(client, bufnr)
  vim.api.nvim_create_autocmd('LspDetach', {
    group = vim.api.nvim_create_augroup('specedit.inline.detach:' .. bufnr, {}),
    buffer = bufnr,
    callback = function(event)
      if event.data.client_id == client.id then
        backend().detach(client, bufnr)
        return true
      end
    end,
  })
end

-- In an <expr> mapping the text must not change before it has returned.
---@param change fun()
local function when_allowed(change)
  local done, problem = pcall(change)
  if not done and tostring(problem):find('E565', 1, true) then
    vim.schedule(change)
  elseif not done then
    error(problem, 0)
  end
end

---@param length_of fun(text: string): integer
---@return boolean
local function take(length_of)
  local bufnr = vim.api.nvim_get_current_buf()
  local suggestion = backend().shown(bufnr)
  if not suggestion then
    return false
  end
  when_allowed(function()
    suggestion:take(length_of)
    backend().refresh(bufnr)
  end)
  return true
end

--- Take the completion that is shown.
---@return boolean taken false where none is shown
function M.accept()
  return take(part.whole)
end

--- Take its first word; the rest stays.
---@return boolean taken false where none is shown
function M.accept_word()
  return take(part.word)
end

--- Take its first line; the rest stays.
---@return boolean taken false where none is shown
function M.accept_line()
  return take(part.line)
end

-- Ask as one who waits for it: then the server gives several, and more of them.
---@param index integer which one to show, else the last
---@param on_nothing fun()
---@return boolean asked
local function ask(index, on_nothing)
  local bufnr = vim.api.nvim_get_current_buf()
  local client = require('specedit.server').client(bufnr)
  if not is_enabled or not client or not vim.startswith(vim.api.nvim_get_mode().mode, 'i') then
    return false
  end
  local request = require('specedit.inline.request')
  request.send(client, bufnr, request.INVOKED, function(items, asked)
    if #items > 0 then
      backend().take(client, bufnr, items, asked, index)
    else
      on_nothing()
    end
  end)
  return true
end

---@param step integer
---@return boolean
local function select(step)
  local bufnr = vim.api.nvim_get_current_buf()
  if not M.is_visible() then
    return false
  end
  if backend().count(bufnr) > 1 then
    backend().select(bufnr, step)
    return true
  end
  return ask(2, function() end)
end

--- Show the next one; others than the one that came by itself are asked for.
---@return boolean shown false where none is shown
function M.next()
  return select(1)
end

--- Show the one before.
---@return boolean shown false where none is shown
function M.previous()
  return select(-1)
end

--- Take it off the screen until more is typed.
---@return boolean dismissed false where none is shown
function M.dismiss()
  if not M.is_visible() then
    return false
  end
  backend().dismiss(vim.api.nvim_get_current_buf())
  return true
end

--- Ask for completions now: several, and longer ones.
---@return boolean asked false outside of insert mode, and where the server is not attached
function M.trigger()
  return ask(1, function()
    require('specedit.server').notify('there is nothing to complete here.')
  end)
end

--- Switch completion at the cursor off or on, in all buffers.
function M.toggle()
  switch(not is_enabled)
  local said = is_enabled and 'on.' or 'off. :SpecEditToggle switches it on.'
  require('specedit.server').notify('completion at the cursor is ' .. said)
end

--- Whether a completion is shown at the cursor.
---@return boolean
function M.is_visible()
  return backend().shown(vim.api.nvim_get_current_buf()) ~= nil
end

--- What draws the completions: 'native' or 'fallback'.
---@return 'native'|'fallback'
function M.backend_name()
  return require('specedit.inline.native').is_available() and 'native' or 'fallback'
end

--- Whether completion at the cursor is switched on.
---@return boolean
function M.is_enabled()
  return is_enabled
end

return M
