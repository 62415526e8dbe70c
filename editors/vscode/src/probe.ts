import { execFile } from 'node:child_process';
import type { Candidate } from './server';

const SECONDS = 30;

/** How a process of the server is to run; never in a folder of the workspace, which Python would take modules from. */
export interface Running {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Why a candidate does not start the server, or null where it does; it is asked for its help. */
export function whyNot(candidate: Candidate, running: Running): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { ...running, timeout: SECONDS * 1000, windowsHide: true };
    const child = execFile(candidate.command, [...candidate.args, '--help'], options, (error, _stdout, stderr) =>
      resolve(error && reason(error, stderr)),
    );
    child.stdin?.on('error', () => undefined).end();
  });
}

function reason(error: { code?: unknown; killed?: boolean; message: string }, stderr: string): string {
  if (error.killed) {
    return `it did not answer within ${SECONDS} seconds`;
  }
  switch (error.code) {
    case 'ENOENT':
      return 'there is no such program';
    case 'EACCES':
      return 'it may not be run';
  }
  const said = stderr.trim().split('\n').at(-1)?.trim();
  return said || (typeof error.code === 'number' ? `it ended with code ${error.code}` : error.message);
}
