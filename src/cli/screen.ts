/** A whole screen that is drawn again and again, and leaves the terminal as it was. */
export interface Screen {
  /** As many lines as there is room for; longer ones end at the edge. */
  draw(lines: readonly string[]): void;
  /** Calls back when the size changed. */
  resized(listener: () => void): void;
  close(): void;
}

const CSI = '\u001b[';
/** The other screen, no cursor, no line breaks at the edge: a line that is too long must not push the rest down. */
const OPEN = `${CSI}?1049h${CSI}?25l${CSI}?7l`;
const CLOSE = `${CSI}?7h${CSI}?25h${CSI}?1049l`;

export function openScreen(stdout: NodeJS.WriteStream): Screen {
  const listeners: (() => void)[] = [];
  stdout.write(OPEN);
  return {
    draw(lines) {
      const shown = lines.slice(0, Math.max(1, stdout.rows ?? 24));
      // Written over what is there, not on an emptied screen, which would flicker.
      stdout.write(`${CSI}H${shown.map((line) => `${line}${CSI}0m${CSI}K`).join('\r\n')}${CSI}J`);
    },
    resized(listener) {
      listeners.push(listener);
      stdout.on('resize', listener);
    },
    close() {
      for (const listener of listeners) stdout.off('resize', listener);
      stdout.write(CLOSE);
    },
  };
}
