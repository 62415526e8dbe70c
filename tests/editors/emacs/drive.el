;;; drive.el --- Drives Emacs without a terminal  -*- lexical-binding: t -*-

(require 'cl-lib)
(require 'eglot)
(require 'json)

(setq create-lockfiles nil
      make-backup-files nil)

(defvar drive-is-idle t
  "Whether Emacs has the time to send what was typed, as when nobody types.")

(defun drive-until (condition)
  "Wait until CONDITION gives something, and give it."
  (let ((deadline (+ (float-time) 60))
        value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) deadline)
        (error "It never came to pass: %S" condition))
      ;; Without a terminal nobody ever is.
      (when (and drive-is-idle (eglot-current-server))
        (eglot--signal-textDocument/didChange))
      (accept-process-output nil 0.02))
    value))

(defun drive-open (file)
  "Visit FILE, with the language server that the configuration starts for it."
  (find-file file)
  (buffer-enable-undo)
  ;; There is no command loop, after whose first command Eglot starts.
  (run-hooks 'post-command-hook)
  (drive-until #'eglot-current-server))

(defun drive-titles (actions)
  "The titles of code ACTIONS."
  (mapcar (lambda (action) (plist-get action :title)) actions))

(defun drive-choose (title beg end)
  "Choose the code action TITLE between BEG and END, as a person does."
  (let ((completing-read-function (lambda (&rest _) title))
        ;; It came from the keyboard, not from a menu.
        (last-nonmenu-event ?\r))
    (eglot-code-actions beg end nil t)))

(defun drive-type (text)
  "Type TEXT at the cursor, as one command."
  (undo-boundary)
  (insert text))

(defun drive-text ()
  "The text of the buffer."
  (buffer-substring-no-properties (point-min) (point-max)))

(defun drive-changed ()
  "Wait until the text changes, and until the server has it."
  (let ((before (drive-text)))
    (drive-until (lambda () (not (equal (drive-text) before))))))

(defun drive-undo ()
  "Undo one step."
  (undo-boundary)
  (let ((last-command nil))
    (undo)))

(defvar drive--messages nil)

(cl-defmethod eglot-handle-notification :before
  (_server (_method (eql 'window/showMessage)) &key message &allow-other-keys)
  "Keep the MESSAGE."
  (push message drive--messages))

(defun drive-shown (part)
  "Wait for a message of the server's with PART in it, and give it."
  (drive-until
   (lambda ()
     (cl-find-if (lambda (message) (string-search part message)) drive--messages))))

(defun drive-tell (value)
  "Print VALUE for the test."
  (princ (format "\ntold: %s\n" (json-encode value))))
