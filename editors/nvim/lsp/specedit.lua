--- What `vim.lsp.enable('specedit')` starts. Data alone: what is done with messages stands in lua/specedit/.

---@param module string
---@param name string
---@return lsp.Handler
local function to(module, name)
  return function(_, params, ctx)
    require(module)[name](params, ctx)
  end
end

---@type vim.lsp.Config
return {
  cmd = { 'specedit', 'lsp' },
  root_markers = { '.git', '.hg', 'pyproject.toml', 'package.json', 'go.mod', 'Cargo.toml' },
  capabilities = { experimental = { specedit = { askInstruction = true } } },
  handlers = {
    ['specedit/hunk'] = to('specedit.rewrite', 'on_hunk'),
    ['specedit/hunkRemoved'] = to('specedit.rewrite', 'on_hunk_removed'),
    ['specedit/rebased'] = to('specedit.rewrite', 'on_rebased'),
    ['specedit/rewriteEnd'] = to('specedit.rewrite', 'on_end'),
    ['specedit/nextEdit'] = to('specedit.next_edit', 'on_next_edit'),
    ['specedit/status'] = to('specedit.status', 'on_status'),
  },
  on_exit = function(code, signal, client_id)
    require('specedit.server').on_exit(code, signal, client_id)
  end,
  commands = {
    ['specedit.rewrite'] = function(command, ctx)
      require('specedit.rewrite').on_rewrite(command, ctx)
    end,
    ['specedit.askInstruction'] = function(command, ctx)
      require('specedit.rewrite').on_ask_instruction(command, ctx)
    end,
  },
}
