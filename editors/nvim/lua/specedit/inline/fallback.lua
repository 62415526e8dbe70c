--- Completions at the cursor where Neovim has none of its own (0.11): asked for, kept, chosen and drawn here.
local ghost = require('specedit.inline.ghost')
local request = require('specedit.inline.request')
local suggestion = require('specedit.inline.suggestion')

local api = vim.api

local M = {}

-- A burst of keys is one request; how long typing must rest beyond that is the server's to wait (`inline.debounce_ms`).
local BURST_MS = 50

---@class specedit.inline.Completor
---@field client vim.lsp.Client
---@field suggestions specedit.inline.Suggestion[]
---@field index integer which of them is shown
---@field place? string where the server is or was asked
---@field timer? uv.uv_timer_t
---@field request_id? integer

---@type table<integer, specedit.inline.Completor>
local completors = {}

---@return integer
local function namespace()
  return api.nvim_create_namespace('specedit.inline')
end

---@param bufnr integer
---@return string
local function group(bufnr)
  return 'specedit.inline:' .. bufnr
end

---@param self specedit.inline.Completor
local function stop_asking(self)
  if self.timer and not self.timer:is_closing() then
    self.timer:stop()
    self.timer:close()
  end
  if self.request_id and self.client.requests[self.request_id] then
    self.client:cancel_request(self.request_id)
  end
  self.timer, self.request_id = nil, nil
end

---@param self specedit.inline.Completor
---@param bufnr integer
---@param hint? string
local function draw(self, bufnr, hint)
  local current = self.suggestions[self.index]
  local left = current and current:left()
  if not left then
    self.suggestions = {}
  end
  if left and request.is_typing() then
    ghost.draw(bufnr, namespace(), left, hint)
    current:tell_shown()
  else
    ghost.clear(bufnr, namespace())
  end
end

---@param self specedit.inline.Completor
---@param bufnr integer
---@param items lsp.InlineCompletionItem[]
---@param asked lsp.Position
---@param index integer
---@param is_numbered boolean
local function take(self, bufnr, items, asked, index, is_numbered)
  self.suggestions = {}
  for _, item in ipairs(items) do
    table.insert(self.suggestions, suggestion.new(bufnr, self.client, item, asked))
  end
  local total = #self.suggestions
  self.index = math.min(index, math.max(total, 1))
  draw(self, bufnr, is_numbered and (' (%d/%d)'):format(self.index, total) or nil)
end

-- What no longer goes along with the text is taken away, and the server is asked where nothing is shown.
---@param bufnr integer
local function follow(bufnr)
  local self = completors[bufnr]
  if not self then
    return
  end
  draw(self, bufnr)
  if not request.is_typing() or #self.suggestions > 0 then
    return stop_asking(self)
  end
  local place = request.place(bufnr)
  if self.place == place then
    return
  end
  stop_asking(self)
  self.place = place
  self.timer = vim.defer_fn(function()
    if completors[bufnr] == self and api.nvim_get_current_buf() == bufnr and request.place(bufnr) == place then
      self.request_id = request.send(self.client, bufnr, request.AUTOMATIC, function(items, asked)
        take(self, bufnr, items, asked, 1, false)
      end)
    end
  end, BURST_MS)
end

--- Whether this Neovim has it: all have.
---@return boolean
function M.is_available()
  return true
end

--- Complete in a buffer.
---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  if completors[bufnr] and completors[bufnr].client == client then
    return
  end
  completors[bufnr] = { client = client, suggestions = {}, index = 1 }
  local augroup = api.nvim_create_augroup(group(bufnr), {})
  api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedI', 'TextChangedP', 'CompleteDone' }, {
    group = augroup,
    buffer = bufnr,
    callback = function()
      -- Events come before the mode they announce, and while the list still counts as shown.
      vim.schedule(function()
        follow(bufnr)
      end)
    end,
  })
  api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, {
    group = augroup,
    buffer = bufnr,
    callback = function()
      M.dismiss(bufnr)
      completors[bufnr].place = nil
    end,
  })
end

--- Complete there no more.
---@param client vim.lsp.Client
---@param bufnr integer
function M.detach(client, bufnr)
  if completors[bufnr] and completors[bufnr].client == client then
    M.dismiss(bufnr)
    completors[bufnr] = nil
    api.nvim_del_augroup_by_name(group(bufnr))
  end
end

--- What is shown in a buffer.
---@param bufnr integer
---@return specedit.inline.Suggestion?
function M.shown(bufnr)
  local self = completors[bufnr]
  local current = self and self.suggestions[self.index]
  return current and current:left() and request.is_typing() and current or nil
end

--- Draw what is left, after the text has changed.
---@param bufnr integer
function M.refresh(bufnr)
  follow(bufnr)
end

--- How many there are to choose from.
---@param bufnr integer
---@return integer
function M.count(bufnr)
  return completors[bufnr] and #completors[bufnr].suggestions or 0
end

--- Show another one.
---@param bufnr integer
---@param step integer 1 for the next, -1 for the previous
function M.select(bufnr, step)
  local self = completors[bufnr]
  local total = self and #self.suggestions or 0
  if total > 0 then
    self.index = (self.index - 1 + step) % total + 1
    draw(self, bufnr, (' (%d/%d)'):format(self.index, total))
  end
end

--- Take the server's answer, and show one of it.
---@param client vim.lsp.Client
---@param bufnr integer
---@param items lsp.InlineCompletionItem[]
---@param asked lsp.Position
---@param index integer
function M.take(client, bufnr, items, asked, index)
  local self = completors[bufnr]
  if self and self.client == client then
    stop_asking(self)
    take(self, bufnr, items, asked, index, #items > 1)
  end
end

--- Show nothing until more is typed.
---@param bufnr integer
function M.dismiss(bufnr)
  local self = completors[bufnr]
  if self then
    stop_asking(self)
    self.suggestions = {}
    ghost.clear(bufnr, namespace())
  end
end

return M
