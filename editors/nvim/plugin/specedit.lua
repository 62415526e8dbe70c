-- Commands and <Plug>s. Each is a call of the module that does it, which is loaded by its first use.

if vim.g.loaded_specedit then
  return
end
vim.g.loaded_specedit = true

---@param module string
---@param name string
local function call(module, name)
  return function()
    return require(module)[name]()
  end
end

---@type table<string, { [1]: string, [2]: string, desc: string }>
local commands = {
  SpecEditAccept = { 'specedit.rewrite', 'accept', desc = 'Accept the change at the cursor, else the next one' },
  SpecEditReject = { 'specedit.rewrite', 'reject', desc = 'Reject the change at the cursor, else the next one' },
  SpecEditAcceptAll = { 'specedit.rewrite', 'accept_all', desc = 'Accept all changes of a rewrite' },
  SpecEditRejectAll = { 'specedit.rewrite', 'reject_all', desc = 'Reject all changes of a rewrite' },
  SpecEditNext = { 'specedit.rewrite', 'next', desc = 'Go to the next change' },
  SpecEditPrevious = { 'specedit.rewrite', 'previous', desc = 'Go to the change before' },
  SpecEditCancel = { 'specedit.rewrite', 'cancel', desc = 'Stop a rewrite' },
  SpecEditRegenerate = { 'specedit.rewrite', 'regenerate', desc = 'Ask for another answer' },
  SpecEditToggle = { 'specedit.inline', 'toggle', desc = 'Switch completion at the cursor on or off' },
  SpecEditRestart = { 'specedit.server', 'restart', desc = 'Start the engine anew' },
  SpecEditLog = { 'specedit.server', 'open_log', desc = 'Open the log' },
  SpecEditStatistics = { 'specedit.server', 'statistics', desc = 'What was shown and taken, and what it gained' },
}

for name, command in pairs(commands) do
  vim.api.nvim_create_user_command(name, call(command[1], command[2]), { desc = command.desc })
end

vim.api.nvim_create_user_command('SpecEdit', function(arguments)
  require('specedit.rewrite').command(arguments)
end, { nargs = '*', range = true, bang = true, desc = 'Rewrite lines, or the function at the cursor' })

---@type { [1]: string|string[], [2]: string, [3]: string, [4]: string }[]
local plugs = {
  { 'n', 'rewrite', 'specedit.rewrite', 'at_cursor' },
  { 'x', 'rewrite', 'specedit.rewrite', 'visual' },
  { 'n', 'accept', 'specedit.rewrite', 'accept' },
  { 'n', 'reject', 'specedit.rewrite', 'reject' },
  { 'n', 'accept-all', 'specedit.rewrite', 'accept_all' },
  { 'n', 'reject-all', 'specedit.rewrite', 'reject_all' },
  { 'n', 'next', 'specedit.rewrite', 'next' },
  { 'n', 'previous', 'specedit.rewrite', 'previous' },
  { 'n', 'cancel', 'specedit.rewrite', 'cancel' },
  { 'n', 'regenerate', 'specedit.rewrite', 'regenerate' },
  { { 'n', 'i' }, 'next-edit', 'specedit.next_edit', 'go' },
  { 'i', 'inline-accept', 'specedit.inline', 'accept' },
  { 'i', 'inline-accept-word', 'specedit.inline', 'accept_word' },
  { 'i', 'inline-accept-line', 'specedit.inline', 'accept_line' },
  { 'i', 'inline-next', 'specedit.inline', 'next' },
  { 'i', 'inline-previous', 'specedit.inline', 'previous' },
  { 'i', 'inline-dismiss', 'specedit.inline', 'dismiss' },
  { 'i', 'inline-trigger', 'specedit.inline', 'trigger' },
}

for _, plug in ipairs(plugs) do
  local modes, name, module, member = unpack(plug)
  local run = ("<Cmd>lua require('%s').%s()<CR>"):format(module, member)
  vim.keymap.set(modes, ('<Plug>(specedit-%s)'):format(name), run, { desc = 'specedit: ' .. name:gsub('-', ' ') })
end

vim.api.nvim_create_autocmd('LspAttach', {
  group = vim.api.nvim_create_augroup('specedit', {}),
  desc = 'Complete at the cursor where specedit is attached',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'specedit' then
      require('specedit.line_ends').watch(event.buf)
      require('specedit.inline').attach(client, event.buf)
    end
  end,
})

local highlights = require('specedit.highlights')
highlights.define()
for event, pattern in pairs({ ColorScheme = '*', OptionSet = 'background' }) do
  vim.api.nvim_create_autocmd(event, {
    group = 'specedit',
    pattern = pattern,
    desc = "Make the plugin's colours from the new ones",
    callback = function()
      highlights.define()
    end,
  })
end
