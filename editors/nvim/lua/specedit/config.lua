--- The options: which there are, what they may be, and those that hold.
local M = {}

--- All are optional. What is not given stays as the server has it: see `:help specedit-options`.
---@class specedit.Options
---@field cmd? string[] How the server is started; `{ 'specedit', 'lsp' }`.
---@field root_markers? (string|string[])[] Names that stand at the root of a project.
---@field filetypes? string[] Where it is for; all that have a file type.
---@field engine? string The address of an OpenAI-compatible server, or 'shared'.
---@field model? string Name, hub id or path of the model.
---@field warm_up? boolean Get the model ready when the server starts.
---@field idle_exit_minutes? number After so long without work a server of the model ends.
---@field log_file? string An absolute path.
---@field log_level? 'debug'|'info'|'warning'|'error'
---@field inline? specedit.InlineOptions
---@field rewrite? specedit.RewriteOptions
---@field next_edit? specedit.NextEditOptions
---@field preview? specedit.PreviewOptions
---@field prompt? specedit.PromptOptions

---@class specedit.InlineOptions
---@field enabled? boolean Complete at the cursor.
---@field debounce_ms? integer How long typing must rest before the model is asked.
---@field max_new_tokens? integer The most tokens of a completion that comes by itself.
---@field invoked_max_new_tokens? integer The most tokens of one that was asked for.
---@field alternatives? integer How many are given where they are asked for.
---@field prefix_tokens? integer About how much the model is shown before the cursor.
---@field suffix_tokens? integer About how much after it.
---@field context_tokens? integer About how much of other files.
---@field multi_line? boolean Complete more than the rest of the line.

---@class specedit.RewriteOptions
---@field max_new_tokens? integer The most tokens of a rewrite.
---@field temperature? number
---@field allow_deletions? boolean Take a rewrite that makes much of the code vanish.
---@field allow_syntax_errors? boolean Take one after which the file no longer parses.

---@class specedit.NextEditOptions
---@field enabled? boolean Propose the next edit after your own.
---@field model? boolean Ask the model too, where repeating your edit gives nothing.

---@class specedit.PreviewOptions
---@field sign? string What marks the lines that are rewritten in the sign column; '' shows nothing there.
---@field hints? boolean Say at the change under the cursor which keys or commands decide on it.
---@field syntax? boolean Give new lines the colours of the file's syntax.

---@class specedit.PromptOptions
---@field history? boolean Keep instructions, in a file that only you may read.
---@field border? string|string[] As 'winborder' has it, which counts where this is not given.

---@alias specedit.Check fun(value: any): boolean

---@param kind type
---@return specedit.Check
local function is(kind)
  return function(value)
    return type(value) == kind
  end
end

---@param value any
local function is_count(value)
  return type(value) == 'number' and value >= 0 and value % 1 == 0
end

---@param item specedit.Check
---@return specedit.Check
local function list_of(item)
  return function(value)
    return vim.islist(value) and vim.iter(value):all(item)
  end
end

local text, flag, number = { is('string'), 'a text' }, { is('boolean'), 'true or false' }, { is('number'), 'a number' }
local count, texts = { is_count, 'a whole number from 0 on' }, { list_of(is('string')), 'a list of texts' }

local LEVELS = { 'debug', 'info', 'warning', 'error' }

--- What each option must be, and in words; groups are tables of such.
local KNOWN = {
  cmd = {
    function(value)
      return texts[1](value) and #value > 0
    end,
    "a list of texts, such as { 'specedit', 'lsp' }",
  },
  root_markers = { vim.islist, 'a list of names' },
  filetypes = texts,
  engine = text,
  model = text,
  warm_up = flag,
  idle_exit_minutes = number,
  log_file = text,
  log_level = {
    function(value)
      return vim.list_contains(LEVELS, value)
    end,
    'one of: ' .. table.concat(LEVELS, ', '),
  },
  inline = {
    enabled = flag,
    debounce_ms = count,
    max_new_tokens = count,
    invoked_max_new_tokens = count,
    alternatives = count,
    prefix_tokens = count,
    suffix_tokens = count,
    context_tokens = count,
    multi_line = flag,
  },
  rewrite = { max_new_tokens = count, temperature = number, allow_deletions = flag, allow_syntax_errors = flag },
  next_edit = { enabled = flag, model = flag },
  preview = {
    sign = {
      function(value)
        return type(value) == 'string' and vim.api.nvim_strwidth(value) <= 2
      end,
      'a text of at most two columns',
    },
    hints = flag,
    syntax = flag,
  },
  prompt = {
    history = flag,
    border = {
      function(value)
        return type(value) == 'string' or vim.islist(value)
      end,
      "a border, such as 'rounded'",
    },
  },
}

--- Those that Neovim or this plugin take, and the server is not told.
local NOT_THE_SERVERS = { cmd = true, root_markers = true, filetypes = true, preview = true, prompt = true }

---@type specedit.Options
local DEFAULTS = {
  inline = {},
  rewrite = {},
  next_edit = {},
  preview = { sign = '▎', hints = true, syntax = true },
  prompt = { history = true },
}

--- The options in force.
---@type specedit.Options
M.options = vim.deepcopy(DEFAULTS)

--- In how many single letters two words differ.
---@param one string
---@param other string
local function distance(one, other)
  local row = {}
  for j = 0, #other do
    row[j] = j
  end
  for i = 1, #one do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #other do
      local replaced = diagonal + (one:byte(i) == other:byte(j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(replaced, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#other]
end

--- The key of `known` that is most like `key`; nil where none is like it.
---@param key string
---@param known table<string, any>
---@return string?
local function nearest(key, known)
  local folded, best, least = key:gsub('%u', '_%0'):lower(), nil, math.huge
  for _, name in ipairs(vim.fn.sort(vim.tbl_keys(known))) do
    local starts = vim.startswith(name, folded) or vim.startswith(folded, name)
    local differing = starts and 1 or distance(folded, name)
    if differing < least then
      best, least = name, differing
    end
  end
  return least <= math.max(2, #key / 2) and best or nil
end

---@param given table
---@param known table
---@param prefix string
---@param wrong string[] What is wrong is added here.
local function check(given, known, prefix, wrong)
  for key, value in pairs(given) do
    local expected = known[key]
    local name = prefix .. tostring(key)
    if expected == nil then
      local near = nearest(tostring(key), known)
      local all = table.concat(vim.fn.sort(vim.tbl_keys(known)), ', ')
      local hint = near and ('Did you mean %s%s?'):format(prefix, near) or ('It may be one of: %s.'):format(all)
      table.insert(wrong, ('%s is no option. %s'):format(name, hint))
    elseif type(expected[1]) ~= 'function' then
      if type(value) == 'table' then
        check(value, expected, name .. '.', wrong)
      else
        table.insert(wrong, ('%s is %s; it must be a table.'):format(name, vim.inspect(value)))
      end
    elseif not expected[1](value) then
      table.insert(wrong, ('%s is %s; it must be %s.'):format(name, vim.inspect(value), expected[2]))
    end
  end
end

--- Check options and have them hold, with the defaults for what is not given.
--- Raises an error that names all that is wrong; then nothing is changed.
---@param given? specedit.Options
---@return specedit.Options
function M.setup(given)
  if given ~= nil and type(given) ~= 'table' then
    error(("specedit: setup takes a table of options, not %s. See :help specedit-options."):format(type(given)), 0)
  end
  local wrong = {}
  check(given or {}, KNOWN, '', wrong)
  if #wrong > 0 then
    table.sort(wrong)
    error('specedit: ' .. table.concat(wrong, '\n') .. '\nSee :help specedit-options.', 0)
  end
  M.options = vim.tbl_deep_extend('force', vim.deepcopy(DEFAULTS), given or {})
  return M.options
end

---@param name string
local function camel(name)
  return (name:gsub('_(%l)', string.upper))
end

---@param options table
---@return table<string, any>
local function camelled(options)
  local result = vim.empty_dict()
  for name, value in pairs(options) do
    result[camel(name)] = type(value) == 'table' and camelled(value) or value
  end
  return result
end

--- What `vim.lsp.config` takes of options.
---@param options specedit.Options
---@return vim.lsp.Config
function M.for_server(options)
  local told = {}
  for name, value in pairs(options) do
    if not NOT_THE_SERVERS[name] then
      told[name] = vim.deepcopy(value)
    end
  end
  -- The plugin does not ask where this is off, and :SpecEditToggle may switch it on.
  told.inline.enabled = nil
  return {
    cmd = options.cmd,
    root_markers = options.root_markers,
    filetypes = options.filetypes,
    init_options = camelled(told),
  }
end

return M
