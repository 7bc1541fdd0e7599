package dev.gantry.samples;

import dev.gantry.core.io.ProgressListener;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/// A bar on standard error, where that is a terminal; else nothing.
final class Progress implements ProgressListener, AutoCloseable {
  private final ProgressBar bar;

  Progress(String task, long totalBytes) {
    PrintStream console =
        Objects.requireNonNull(System.console()).isTerminal()
            ? System.err
            : new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8);
    bar =
        new ProgressBarBuilder()
            .setTaskName(task)
            .setInitialMax(totalBytes)
            .setUnit("MB", 1_000_000)
            .setStyle(ProgressBarStyle.UNICODE_BLOCK)
            .setUpdateIntervalMillis(100)
            .showSpeed()
            .setConsumer(new ConsoleProgressBarConsumer(console))
            .build();
  }

  @Override
  public void onProgress(long done, long total) {
    bar.maxHint(total);
    bar.stepTo(done);
  }

  @Override
  public void close() {
    bar.close();
  }
}
