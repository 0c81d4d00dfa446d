import { EXIT } from '../../error-catalogue.ts';
import { type FileFinding, validateFiles } from '../../registry/validate.ts';
import type { CommandModule } from '../main.ts';
import { printable } from '../render.ts';
import { place } from '../views/asset-invalid.ts';

/** Needs neither a daemon nor Redis: for editors, hooks and pipelines. */
export const run: CommandModule['run'] = async ({ input }, output, { cwd }) => {
  const asked = [input.path as string | readonly string[]].flat();
  const { findings, files, assets } = await validateFiles(asked, cwd);
  const wrong = findings.filter(({ severity }) => severity === 'error');
  if (output.form === 'json') output.json({ valid: wrong.length === 0, files, assets, findings });
  else for (const finding of findings) show(finding);
  const warnings = findings.length - wrong.length;
  output.hint(`${files} files, ${assets} assets, ${wrong.length} errors, ${warnings} warnings`);
  return wrong.length > 0 ? EXIT.differs : EXIT.ok;

  function show({ path, severity, message, hint, ...where }: FileFinding): void {
    const word = severity === 'error' ? output.style('red', 'error') : output.style('yellow', 'warning');
    output.print(`${place(path, where)}: ${word}: ${printable(message)}${hint ? ` (${printable(hint)})` : ''}`);
  }
};
