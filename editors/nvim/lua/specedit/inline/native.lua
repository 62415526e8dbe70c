--- Completions at the cursor by Neovim's own `vim.lsp.inline_completion` (0.12).
---
--- It asks, keeps the items and chooses among them, and `vim.lsp.inline_completion.get()` and `select()` work. What it
--- has no function for is done by its completor: one for each buffer, which is not public, so `is_available` looks
--- whether it is as expected. Drawing is ours, because its own shows an item for a moment longer than it fits the text,
--- would then put it into the wrong place, and covers what stands behind the cursor.
local ghost = require('specedit.inline.ghost')
local request = require('specedit.inline.request')
local suggestion = require('specedit.inline.suggestion')

local M = {}

local EXPECTED = {
  'new',
  'on_attach',
  'on_detach',
  'destroy',
  'abort',
  'count_items',
  'get_item',
  'hide',
  'select',
  'show',
}

---@return table? the completors' prototype
local function prototype()
  if vim.fn.has('nvim-0.12') == 0 or not vim.lsp.inline_completion then
    return nil
  end
  local found, capability = pcall(require, 'vim.lsp._capability')
  return found and vim.tbl_get(capability, 'all', 'inline_completion') or nil
end

---@param bufnr integer
---@return table?
local function completor(bufnr)
  local found = prototype()
  return found and found.active[bufnr]
end

---@return integer
local function namespace()
  return vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
end

--- Whether this Neovim has it.
---@return boolean
function M.is_available()
  local found = prototype()
  return found ~= nil
    and type(found.active) == 'table'
    and vim.iter(EXPECTED):all(function(name)
      return vim.is_callable(found[name])
    end)
end

--- What the completor draws: in the place of its own method.
---@param self table
---@param hint? string
local function show(self, hint)
  local current, bufnr = self.current, self.bufnr
  local client = current and vim.lsp.get_client_by_id(current.client_id)
  if not client or client.name ~= 'specedit' then
    return prototype().show(self, hint)
  end
  if not current.suggestion then
    local _, item = self:get_item(current._index)
    -- Without an item of the editor's own list, the server's ranges begin at the cursor.
    current.suggestion = item and item.range and suggestion.new(bufnr, client, item, item.range.start)
  end
  local left = current.suggestion and current.suggestion:left()
  if not left then
    self.current = nil
    return ghost.clear(bufnr, namespace())
  end
  -- For `vim.lsp.inline_completion.get()`. In UTF-8, LSP's characters are bytes.
  current.insert_text = left.text
  current.range = vim.range.lsp(bufnr, {
    start = { line = left.row, character = left.col },
    ['end'] = { line = left.row, character = left.col + #left.replaced },
  }, 'utf-8')
  if not request.is_typing() then
    return ghost.clear(bufnr, namespace())
  end
  ghost.draw(bufnr, namespace(), left, hint)
  current.suggestion:tell_shown()
end

--- Complete in a buffer.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  local Completor = assert(prototype())
  local self = Completor.active[bufnr] or Completor:new(bufnr)
  if not self.client_state[client.id] then
    self:on_attach(client.id)
  end
  if self.show == show then
    return
  end
  self.show = show
  self.hide = function()
    ghost.clear(bufnr, namespace())
  end
  -- It follows the cursor alone, which stays where text behind it goes, and where the editor's own list is closed.
  vim.api.nvim_create_autocmd({ 'TextChangedI', 'CompleteDone' }, {
    group = self.augroup,
    buffer = bufnr,
    callback = vim.schedule_wrap(function()
      M.refresh(bufnr)
    end),
  })
end

--- Complete there no more.
---@param client vim.lsp.Client
---@param bufnr integer
function M.detach(client, bufnr)
  local self = completor(bufnr)
  if not self or not self.client_state[client.id] then
    return
  end
  self:abort()
  self:on_detach(client.id)
  if not next(self.client_state) then
    self:destroy()
  end
end

--- What is shown in a buffer.
---@param bufnr integer
---@return specedit.inline.Suggestion?
function M.shown(bufnr)
  local self = completor(bufnr)
  local found = self and self.current and self.current.suggestion
  return found and found:left() and request.is_typing() and found or nil
end

--- Draw what is left, after the text has changed.
---@param bufnr integer
function M.refresh(bufnr)
  local self = completor(bufnr)
  if self then
    self:show()
  end
end

--- How many there are to choose from.
---@param bufnr integer
---@return integer
function M.count(bufnr)
  local self = completor(bufnr)
  return self and self:count_items() or 0
end

--- Show another one.
---@param bufnr integer
---@param step integer 1 for the next, -1 for the previous
function M.select(bufnr, step)
  vim.lsp.inline_completion.select({ bufnr = bufnr, count = step })
end

--- Take the server's answer, and show one of it.
---@param client vim.lsp.Client
---@param bufnr integer
---@param items lsp.InlineCompletionItem[]
---@param _asked lsp.Position
---@param index integer
function M.take(client, bufnr, items, _asked, index)
  local self = completor(bufnr)
  if self and self.client_state[client.id] then
    self:abort()
    self.client_state[client.id].items = items
    self:select(math.min(index, self:count_items()), self:count_items() > 1)
  end
end

--- Show nothing until more is typed.
---@param bufnr integer
function M.dismiss(bufnr)
  local self = completor(bufnr)
  if self then
    self:abort()
  end
end

return M
