--- `:checkhealth specedit`: what works, and what mends what doesn't.
local health = vim.health

local M = {}

-- Each draws at the cursor too, so that two completions stand on one another.
local OTHERS = {
  ['copilot.vim'] = 'loaded_copilot',
  ['codeium.vim'] = 'loaded_codeium',
  ['supermaven-nvim'] = 'loaded_supermaven',
  ['llama.vim'] = 'loaded_llama',
}

local function check_neovim()
  health.start('specedit: Neovim')
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.11') == 0 then
    health.error(('Neovim is %s; 0.11 is needed.'):format(version), 'Update Neovim.')
  elseif require('specedit.inline').backend_name() == 'native' then
    health.ok(('Neovim %s; completions come by its own `vim.lsp.inline_completion`.'):format(version))
  elseif vim.fn.has('nvim-0.12') == 1 then
    health.warn(
      ('Neovim %s has changed what is below `vim.lsp.inline_completion`; the plugin does without.'):format(version),
      'All keys of the plugin work; `vim.lsp.inline_completion.get()` does not see its completions. Update the plugin.'
    )
  else
    health.ok(('Neovim %s; it has no inline completion of its own, so the plugin completes by itself.'):format(version))
  end
  for name, variable in pairs(OTHERS) do
    if vim.g[variable] then
      health.warn(
        name .. ' draws completions at the cursor too.',
        'Switch one of them off: setup({ inline = { enabled = false } }) leaves rewrites and next edits.'
      )
    end
  end
end

--- What a command prints, its lines joined; nil where it fails.
---@param command string[]
---@return string?
local function output(command)
  local started, process = pcall(vim.system, command, { text = true, timeout = 20000 })
  local result = started and process:wait()
  return result and result.code == 0 and vim.trim(result.stdout or '') or nil
end

local function check_program()
  health.start('specedit: the language server')
  local config = vim.lsp.config.specedit
  local cmd = config and config.cmd
  if type(cmd) ~= 'table' then
    health.info('`cmd` is a function; what it starts can not be looked at.')
    return
  end
  local missing = require('specedit.server').why_not_startable()
  if missing then
    health.error(missing)
    return
  end
  local version, help = output({ cmd[1], '--version' }), output({ cmd[1], cmd[2] or 'lsp', '--help' })
  if cmd[2] ~= 'lsp' then
    health.info(('it is started as `%s`.'):format(table.concat(cmd, ' ')))
  elseif not version or not help then
    health.error(
      ('`%s` is there, but `%s lsp` does not run: it is too old, or not whole.'):format(vim.fn.exepath(cmd[1]), cmd[1]),
      "Update it (in a checkout: pip install -e '.[local]'), then look at what `specedit lsp --help` prints."
    )
  else
    health.ok(('`%s`: %s'):format(vim.fn.exepath(cmd[1]), version))
  end
end

---@param client vim.lsp.Client
local function check_client(client)
  local names = {}
  for bufnr in pairs(client.attached_buffers) do
    local name = vim.api.nvim_buf_get_name(bufnr)
    table.insert(names, name == '' and ('buffer %d'):format(bufnr) or vim.fn.fnamemodify(name, ':~:.'))
  end
  table.sort(names)
  local root = client.root_dir and vim.fn.fnamemodify(client.root_dir, ':~') or 'no folder'
  health.ok(('runs for %s, attached to %s.'):format(root, #names > 0 and table.concat(names, ', ') or 'no buffer'))
end

local function check_clients()
  local clients = vim.lsp.get_clients({ name = 'specedit' })
  if vim.lsp.is_enabled and not vim.lsp.is_enabled('specedit') then
    health.error(
      'it is not switched on.',
      "Put require('specedit').setup() or vim.lsp.enable('specedit') in your init.lua."
    )
  elseif #clients == 0 then
    health.warn(
      'it runs for no buffer.',
      ('Open a file that has a file type. If it does not start then, look at %s.'):format(vim.lsp.log.get_filename())
    )
  end
  for _, client in ipairs(clients) do
    check_client(client)
  end
end

local function check_engine()
  health.start('specedit: the engine')
  local status = require('specedit.status').current()
  if not status then
    health.info('nothing is known of it: no server has told anything yet.')
    return
  end
  local model = status.model ~= '' and ('model %s'):format(status.model) or 'the model is not known yet'
  if status.state == 'error' then
    local fix = status.fix ~= '' and status.fix or 'Look at :SpecEditLog.'
    health.error(('it is in trouble: %s.'):format(status.message), { fix, ':SpecEditRestart starts it anew.' })
  elseif status.state == 'loading' then
    local percent = status.percent and (' (%d%%)'):format(status.percent) or ''
    health.info(('it is loading%s: %s; %s.'):format(percent, status.message, model))
  else
    health.ok(('it is %s; %s.'):format(status.state, model))
  end
end

local function check_set_up()
  health.start('specedit: set-up')
  local inline = require('specedit.inline')
  local said = inline.is_enabled() and 'on.' or 'off; :SpecEditToggle switches it on.'
  health.info('completion at the cursor is ' .. said)
  if vim.fn.hasmapto('<Plug>(specedit-inline-accept)', 'i') == 0 then
    health.info('no key is mapped to <Plug>(specedit-inline-accept); see :help specedit-mappings')
  end
  if not vim.o.hidden then
    health.warn("'hidden' is off, so a buffer that you leave is closed, and its rewrite with it.", ':set hidden')
  end
end

--- Look at everything.
function M.check()
  check_neovim()
  check_program()
  check_clients()
  check_engine()
  check_set_up()
end

return M
