// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.bench.Block.Entry;
import dev.gantry.benchmarks.harness.Budget;
import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Trace;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PageCache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One run of the bench. It runs block after block; in each block, contenders run in turns.
public final class Bench implements AutoCloseable {
  /// The pause between runs on a GPU: meanwhile the driver clears freed memory, which would make the next
  /// run a tenth slower.
  private static final int PAUSE_MILLIS = 400;

  private static final int QUICK_PAUSE_MILLIS = 50;

  private static final int TRIES = 3;

  /// The groups that end when their share of the time is used up. All other groups are measured at least
  /// once, as long as the bench has time left.
  private static final Set<Group> END_EARLY = EnumSet.of(Group.GRID);

  private final Settings settings;
  private static final Logger LOG = LoggerFactory.getLogger(Bench.class);

  private final ProgressListener progress;
  private final Consumer<String> status;
  private final GantrySession session = GantrySession.open();
  private final Findings found;

  /// The time at which the budget is used up, by [System#nanoTime].
  private final long end;

  /// @param progress receives how many blocks are done
  /// @param status receives a description of the current work
  public Bench(Settings settings, ProgressListener progress, Consumer<String> status) {
    this.settings = settings;
    this.progress = progress;
    this.status = status;
    this.end = System.nanoTime() + settings.budgetSeconds() * 1_000_000_000L;
    this.found = new Findings(settings);
  }

  /// Returns the result so far, for a bench that is told to end. Thread-safe.
  ///
  /// @param reason why the result is incomplete
  public Optional<Result> soFar(String reason) {
    return found.soFar(reason);
  }

  private String usedUp() {
    return "the budget of " + settings.budgetSeconds() + " s was used up";
  }

  private boolean isUsedUp() {
    return System.nanoTime() >= end;
  }

  /// @throws IOException if the disk has too little space, or a file cannot be read or written
  /// @throws WrongBytesException if a load returned wrong bytes
  public Result run() throws Exception {
    Diagnosis diagnosis = session.diagnose();
    Device device = settings.device();
    found.on(MachineProbe.look(diagnosis, settings.folder()));
    try (PythonPeers python =
        PythonPeers.start(
            "python3", device.equals(Device.HOST) ? "cpu" : device.toString(), settings.folder())) {
      python.absences().forEach(absence -> found.absent(absence.what(), absence.reason()));
      status.accept("making files");
      List<Subject> subjects = subjects(diagnosis, python);
      Subject largest = Blocks.largest(subjects);
      ChildJvm first =
          new ChildJvm(
              "Gantry, from opening the session",
              GantryLoad.class,
              largest.file().toString(),
              device.toString());
      measure(new Blocks(settings, session, found, python).all(subjects, first));
      addProcessStarts(largest, first);
      status.accept("one load, looked at closely");
      Trace trace = isUsedUp() ? Trace.none(usedUp()) : trace(Blocks.traced(subjects));
      if (device.equals(Device.HOST)) {
        found.absent("PCIe, transports to a GPU", gpuAbsence(diagnosis));
      }
      return found.result(trace);
    }
  }

  private static String gpuAbsence(Diagnosis diagnosis) {
    return diagnosis.cudaAbsence().isEmpty() ? "loads go to host memory" : diagnosis.cudaAbsence();
  }

  private List<Subject> subjects(Diagnosis diagnosis, PythonPeers python) throws IOException {
    Path own = settings.file();
    if (own != null) {
      return List.of(Subjects.of(own));
    }
    long deviceBytes =
        diagnosis.devices().stream()
            .filter(device -> device.device().equals(settings.device()))
            .mapToLong(Diagnosis.CudaDevice::freeBytes)
            .findFirst()
            .orElse(Long.MAX_VALUE);
    List<Long> sizes =
        settings.sizes().isEmpty()
            ? Subjects.sizes(settings.device(), settings.quick(), deviceBytes, settings.folder())
            : settings.sizes();
    Subjects.Made made =
        Subjects.make(settings.folder(), sizes, python.isEmpty() ? 0 : 1, end, System::nanoTime);
    made.leftOut().forEach(what -> found.absent(what, usedUp() + " by making files"));
    return made.subjects();
  }

  private void addProcessStarts(Subject subject, ChildJvm first) {
    if (!first.figures().isEmpty()) {
      found.add(
          new Point(
              Group.FIRST_LOAD,
              "Gantry, from the start of the process",
              subject.what(),
              Heat.HOT,
              subject.bytes(),
              first.figures().stream().map(seconds -> subject.bytes() / 1e9 / seconds[1]).toList(),
              "",
              Map.of(),
              ""));
    }
  }

  private Trace trace(Subject subject) {
    try {
      return LoadTrace.record(session, subject, settings.device(), settings.folder());
    } catch (IOException | RuntimeException e) {
      return Trace.none(Turns.reason(e));
    }
  }

  private void measure(List<Block> blocks) throws Exception {
    found.plan(blocks.stream().map(Block::title).toList());
    Budget budget =
        new Budget(
            (end - System.nanoTime()) / 1e9,
            blocks.stream().mapToDouble(Block::weight).sum(),
            System::nanoTime);
    int done = 0;
    for (Block block : blocks) {
      progress.onProgress(done++, blocks.size());
      LOG.info("part {} of {}: {}", done, blocks.size(), block.title());
      status.accept(block.place());
      long deadline = budget.deadline(block.weight());
      boolean ended = deadline <= System.nanoTime() && END_EARLY.contains(block.group());
      if (isUsedUp() || ended) {
        found.absent(block.title(), usedUp());
      } else {
        measure(block, deadline);
      }
      found.done();
    }
    progress.onProgress(done, blocks.size());
  }

  private void measure(Block block, long deadline) throws Exception {
    if (block.heat() == Heat.COLD) {
      String reason = warmness(block.files());
      if (!reason.isEmpty()) {
        found.absent("cold, " + block.what(), reason);
        return;
      }
    }
    List<Entry> entries = new ArrayList<>();
    try {
      entries.addAll(contenders(block));
      long last = END_EARLY.contains(block.group()) ? deadline : end;
      List<Contender> contenders = entries.stream().map(Entry::contender).toList();
      Turns turns = new Turns(contenders, settings.repeats(), last, System::nanoTime);
      found.begin(() -> block.points(entries, turns));
      turns.run(() -> prepare(block), block.warmsUp(), deadline);
      turns.failures().forEach(failure -> found.failed(block.place(), failure));
      if (turns.leftOut() > 0) {
        found.absent(
            block.title() + ", " + turns.leftOut() + " of " + entries.size() + " points", usedUp());
      }
    } finally {
      entries.forEach(entry -> entry.contender().close());
    }
  }

  /// Makes a block's contenders; none, with the reason kept, if the machine lacks what they need.
  private List<Entry> contenders(Block block) throws Exception {
    try {
      return block.contenders().make();
    } catch (DeviceUnavailableException | TransferException e) {
      found.absent(block.title(), Turns.reason(e));
      return List.of();
    }
  }

  /// Says why files cannot be dropped from the page cache; empty if they can.
  private static String warmness(List<Path> files) {
    long left = 0;
    for (Path file : existing(files)) {
      long bytes = dropped(file);
      if (bytes < 0) {
        return "the kernel does not say what is in the page cache";
      }
      left += bytes;
    }
    return left == 0 ? "" : String.format(Locale.ROOT, "%,d bytes stay in the page cache", left);
  }

  private static List<Path> existing(List<Path> files) {
    return files.stream().filter(Files::exists).toList();
  }

  private static long dropped(Path file) {
    long left = -1;
    for (int i = 0; i < TRIES && left != 0; i++) {
      left = PageCache.drop(file);
    }
    return left;
  }

  private void prepare(Block block) throws IOException, InterruptedException {
    switch (block.heat()) {
      case HOT -> {
        for (Path file : existing(block.files())) {
          if (PageCache.residentBytes(file) < Files.size(file)) {
            PageCache.warm(file);
          }
        }
      }
      case COLD -> {
        String reason = warmness(block.files());
        if (!reason.isEmpty()) {
          throw new IOException(reason);
        }
      }
      case NONE -> {}
    }
    if (settings.device() instanceof Device.Cuda) {
      Thread.sleep(settings.quick() ? QUICK_PAUSE_MILLIS : PAUSE_MILLIS);
    }
  }

  @Override
  public void close() {
    session.close();
  }
}
