// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.harness.Budget;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.benchmarks.result.Absence;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Trace;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// One run of the bench: block by block, the contenders of each in turns.
public final class Bench implements AutoCloseable {
  private static final long MIB = 1 << 20;

  private static final String WRITTEN = "written.bin";

  /// Between runs on a GPU: the driver clears memory that was freed, and what comes right after is a
  /// tenth slower.
  private static final int PAUSE_MILLIS = 400;

  private static final int QUICK_PAUSE_MILLIS = 50;

  private static final int MOST_COPY_BYTES = 256 << 20;
  private static final long MOST_TRACED_BYTES = 1L << 30;
  private static final int TRIES = 3;

  /// Groups that end when their share of the time is used up. All others are measured once at least,
  /// as long as the bench has time left.
  private static final Set<Group> END_EARLY = EnumSet.of(Group.GRID);

  private final Settings settings;
  private static final Logger LOG = LoggerFactory.getLogger(Bench.class);

  private final ProgressListener progress;
  private final Consumer<String> status;
  private final GantrySession session = GantrySession.open();
  private final Findings found;

  /// When the budget is used up, by [System#nanoTime].
  private final long end;

  /// @param ceiling name of the ceiling to compare with; empty for none
  private record Entry(
      Group group, Contender contender, long bytes, String ceiling, Map<String, Long> parameters) {
    static Entry of(Group group, Contender contender, long bytes, String ceiling) {
      return new Entry(group, contender, bytes, ceiling, Map.of());
    }
  }

  /// Makes a block's contenders, when its turn has come.
  @FunctionalInterface
  private interface Contenders {
    List<Entry> make() throws Exception;
  }

  /// @param weight its share of the time
  private record Block(
      Group group, String what, Heat heat, List<Path> files, double weight, Contenders contenders) {
    String place() {
      return what + (heat == Heat.NONE ? "" : ", " + heat);
    }

    String title() {
      return group.title() + ", " + place();
    }
  }

  /// @param progress is told how many blocks are done
  /// @param status is told what is being done
  public Bench(Settings settings, ProgressListener progress, Consumer<String> status) {
    this.settings = settings;
    this.progress = progress;
    this.status = status;
    this.end = System.nanoTime() + settings.budgetSeconds() * 1_000_000_000L;
    this.found = new Findings(settings);
  }

  /// Gives what was found so far; for a bench that is told to end. Thread-safe.
  ///
  /// @param reason why there is no more of it
  public Optional<Result> soFar(String reason) {
    return found.soFar(reason);
  }

  private String usedUp() {
    return "the budget of " + settings.budgetSeconds() + " s was used up";
  }

  private boolean isUsedUp() {
    return System.nanoTime() >= end;
  }

  /// @throws IOException if there is no room for the files, or they cannot be read or written
  /// @throws WrongBytesException if a load brought wrong bytes
  public Result run() throws Exception {
    Diagnosis diagnosis = session.diagnose();
    Device device = settings.device();
    found.on(MachineProbe.look(diagnosis, settings.folder()));
    try (PythonPeers python =
        PythonPeers.start(
            "python3", device.equals(Device.HOST) ? "cpu" : device.toString(), settings.folder())) {
      python.absences().forEach(found::absent);
      status.accept("making files");
      List<Subject> subjects = subjects(diagnosis, python);
      List<Block> blocks = new ArrayList<>(ceilings(subjects));
      // Their ceilings are chosen when these have run.
      for (Subject subject : subjects) {
        for (Heat heat : List.of(Heat.HOT, Heat.COLD)) {
          blocks.add(loads(subject, heat, python));
        }
      }
      Subject largest = largest(subjects, Long.MAX_VALUE);
      FirstLoad first = new FirstLoad(largest.file(), device);
      blocks.add(firstLoads(largest, first));
      blocks.addAll(grids(largest(subjects, MOST_TRACED_BYTES)));
      measure(blocks);
      addProcessStarts(largest, first);
      status.accept("one load, looked at closely");
      Trace trace = isUsedUp() ? Trace.none(usedUp()) : trace(largest(subjects, MOST_TRACED_BYTES));
      if (device.equals(Device.HOST)) {
        found.absent(new Absence("PCIe, transports to a GPU", gpuAbsence(diagnosis)));
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
    made.leftOut().forEach(what -> absent(what, usedUp() + " by making files"));
    return made.subjects();
  }

  private static Subject largest(List<Subject> subjects, long mostBytes) {
    List<Subject> large = subjects.stream().filter(Subject::large).toList();
    return large.stream()
        .filter(subject -> subject.bytes() <= mostBytes)
        .max(Comparator.comparingLong(Subject::bytes))
        .orElse(large.getFirst());
  }

  /// Thread counts to try, as powers of 2.
  ///
  /// @param most of them
  static List<Integer> threads(int most, boolean quick) {
    List<Integer> counts = new ArrayList<>();
    for (int count = 1; count <= most; count *= 2) {
      counts.add(count);
    }
    return quick && counts.size() > 2 ? List.of(counts.getFirst(), counts.getLast()) : counts;
  }

  private List<Block> ceilings(List<Subject> subjects) {
    int cores = Runtime.getRuntime().availableProcessors();
    Subject largest = largest(subjects, MOST_TRACED_BYTES);
    long copied = Math.min(MOST_COPY_BYTES, largest.bytes());
    long written = Math.max(8 * MIB, Math.min(512 * MIB, largest.bytes()));
    boolean quick = settings.quick();
    List<Block> blocks = new ArrayList<>();
    blocks.add(
        new Block(
            Group.CEILING,
            "memory",
            Heat.NONE,
            List.of(),
            0.5,
            () ->
                threads(cores, quick).stream()
                    .map(count ->
                        ceiling(HostCeilings.memoryCopy(count, copied), copied / count * count))
                    .toList()));
    blocks.add(
        new Block(
            Group.CEILING,
            largest.what(),
            Heat.HOT,
            List.of(largest.file()),
            1,
            () -> {
              long size = size(largest);
              return threads(Math.min(16, 2 * cores), quick).stream()
                  .map(count -> ceiling(HostCeilings.pageCache(largest.file(), count), size))
                  .toList();
            }));
    blocks.add(
        new Block(
            Group.CEILING,
            largest.what(),
            Heat.COLD,
            List.of(largest.file()),
            2,
            () -> {
              long size = size(largest);
              return threads(Math.clamp(2L * cores, 8, 16), quick).stream()
                  .map(count -> ceiling(HostCeilings.directRead(largest.file(), count), size))
                  .toList();
            }));
    blocks.add(
        new Block(
            Group.CEILING,
            written / MIB + " MiB",
            Heat.NONE,
            List.of(),
            2,
            () ->
                (quick ? List.of(4) : List.of(1, 4))
                    .stream()
                        .map(count ->
                            ceiling(
                                HostCeilings.directWrite(
                                    settings.folder().resolve(WRITTEN), count, written),
                                written / (8 * MIB) * (8 * MIB)))
                        .toList()));
    if (settings.device() instanceof Device.Cuda cuda) {
      blocks.add(
          new Block(
              Group.CEILING,
              "link",
              Heat.NONE,
              List.of(),
              0.5,
              () ->
                  List.of(
                      ceiling(new LinkCeiling(cuda, true), LinkCeiling.BYTES),
                      ceiling(new LinkCeiling(cuda, false), LinkCeiling.BYTES))));
    }
    return blocks;
  }

  private static long size(Subject subject) throws IOException {
    return Files.size(subject.file());
  }

  private static Entry ceiling(Contender contender, long bytes) {
    return Entry.of(Group.CEILING, contender, bytes, "");
  }

  /// The best of the ceilings of a kind that were measured.
  private String best(String kind) {
    return found.points().stream()
        .filter(point -> point.group() == Group.CEILING && point.name().startsWith(kind))
        .max(Comparator.comparingDouble(Point::median))
        .map(Point::name)
        .orElse("");
  }

  private static int threadsIn(String ceiling) {
    String digits = ceiling.replaceAll("\\D", "");
    return digits.isEmpty() ? 1 : Integer.parseInt(digits);
  }

  private Block loads(Subject subject, Heat heat, PythonPeers python) {
    Path spare = settings.folder().resolve(subject.file().getFileName() + ".pt");
    // The larger the file, the longer a turn; but the
    // small ones need turns, too. Cold runs differ little.
    double weight = (1 + subject.bytes() / (256.0 * MIB)) * (heat == Heat.HOT ? 3 : 1);
    return new Block(
        Group.LOAD,
        subject.what(),
        heat,
        List.of(subject.file(), spare),
        weight,
        () -> {
          Entry ceiling = ceilingOf(subject, heat);
          String name = ceiling.contender().name();
          List<Entry> entries = new ArrayList<>(List.of(ceiling));
          ours(subject, heat == Heat.HOT)
              .forEach(load -> entries.add(Entry.of(Group.LOAD, load, subject.bytes(), name)));
          peers(subject, spare, python)
              .forEach(load -> entries.add(Entry.of(Group.LOAD, load, subject.bytes(), name)));
          return entries;
        });
  }

  /// The ceiling takes its turns with those who are compared with it.
  private Entry ceilingOf(Subject subject, Heat heat) throws IOException {
    if (heat == Heat.COLD) {
      int threads = threadsIn(best("O_DIRECT read").replace("O_DIRECT read", ""));
      return ceiling(HostCeilings.directRead(subject.file(), threads), size(subject));
    }
    if (settings.device() instanceof Device.Cuda cuda) {
      return ceiling(new LinkCeiling(cuda, true), LinkCeiling.BYTES);
    }
    return ceiling(
        HostCeilings.pageCache(subject.file(), threadsIn(best("page cache"))), size(subject));
  }

  /// @param check whether the first load of each is compared with the file: what is right hot is right cold
  private List<Contender> ours(Subject subject, boolean check) {
    List<Contender> ours = new ArrayList<>();
    TransferOptions byEvidence = TransferOptions.defaults();
    ours.add(load("Gantry", subject, byEvidence, check));
    if (settings.device() instanceof Device.Cuda) {
      for (Transport transport : EnumSet.complementOf(EnumSet.of(Transport.HOST))) {
        ours.add(load("Gantry, " + transport, subject, byEvidence.withTransport(transport), check));
      }
    }
    return ours;
  }

  private Contender load(String name, Subject subject, TransferOptions options, boolean check) {
    return new GantryLoad(name, session, subject.file(), settings.device(), options, check);
  }

  private List<Contender> peers(Subject subject, Path spare, PythonPeers python) {
    List<Contender> peers = new ArrayList<>(python.contenders(subject.file(), spare));
    long heap = Runtime.getRuntime().maxMemory();
    if (!subject.decodable()) {
      absent("DJL NDList.decode, " + subject.what(), "it does not know all of the types");
    } else if (2 * subject.bytes() > heap || subject.bytes() > Integer.MAX_VALUE - MIB) {
      absent(
          "DJL NDList.decode, " + subject.what(),
          "it needs an array of the heap, which has " + heap / MIB + " MiB");
    } else {
      peers.add(JvmPeers.djl(subject.file()));
    }
    peers.add(JvmPeers.channel(subject.file(), 1));
    int cores = Runtime.getRuntime().availableProcessors();
    if (cores > 1) {
      peers.add(JvmPeers.channel(subject.file(), Math.min(cores, 16)));
    }
    return peers;
  }

  private void absent(String what, String reason) {
    found.absent(new Absence(what, withoutPaths(reason)));
  }

  /// Files are named elsewhere, and differ from block to block.
  private String withoutPaths(String reason) {
    return reason.replaceAll(Pattern.quote(settings.folder() + File.separator) + "[^ :]*(: )?", "");
  }

  private Block firstLoads(Subject subject, FirstLoad first) {
    return new Block(
        Group.FIRST_LOAD,
        subject.what(),
        Heat.HOT,
        List.of(subject.file()),
        2,
        () -> List.of(Entry.of(Group.FIRST_LOAD, first, subject.bytes(), "")));
  }

  private void addProcessStarts(Subject subject, FirstLoad first) {
    List<Double> seconds = first.processSeconds();
    if (!seconds.isEmpty()) {
      found.add(
          new Point(
              Group.FIRST_LOAD,
              "Gantry, from the start of the process",
              subject.what(),
              Heat.HOT,
              subject.bytes(),
              seconds.stream().map(time -> subject.bytes() / 1e9 / time).toList(),
              "",
              Map.of(),
              ""));
    }
  }

  /// Loads by the best transport, by size of a request and number of threads.
  private List<Block> grids(Subject subject) {
    int cores = Runtime.getRuntime().availableProcessors();
    List<Block> blocks = new ArrayList<>();
    for (Heat heat : settings.quick() ? List.of(Heat.HOT) : List.of(Heat.HOT, Heat.COLD)) {
      blocks.add(
          new Block(
              Group.GRID,
              subject.what(),
              heat,
              List.of(subject.file()),
              heat == Heat.HOT ? 6 : 3,
              () -> {
                List<Entry> entries = new ArrayList<>();
                for (long kib :
                    settings.quick()
                        ? new long[] {1024, 8192}
                        : new long[] {256, 1024, 4096, 8192, 16384}) {
                  for (int threads :
                      settings.quick()
                          ? new int[] {1, 2, 4}
                          : cores < 8 ? new int[] {1, 2, 4, 8} : new int[] {1, 4, 8, 12, 16}) {
                    entries.add(cell(subject, kib << 10, threads));
                  }
                }
                return entries;
              }));
    }
    return blocks;
  }

  private Entry cell(Subject subject, long requestBytes, int threads) {
    String size = requestBytes < MIB ? requestBytes / 1024 + " KiB" : requestBytes / MIB + " MiB";
    TransferOptions options =
        TransferOptions.defaults()
            .withThreads(threads)
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(requestBytes));
    return new Entry(
        Group.GRID,
        load("Gantry, " + size + ", " + Threads.count(threads), subject, options, false),
        subject.bytes(),
        "",
        Map.of(Point.REQUEST_BYTES, requestBytes, Point.THREADS, (long) threads));
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
        absent(block.title(), usedUp());
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
        absent("cold, " + block.what(), reason);
        return;
      }
    }
    List<Entry> entries = new ArrayList<>();
    try {
      entries.addAll(contenders(block));
      long last = END_EARLY.contains(block.group()) ? deadline : end;
      List<Contender> contenders = entries.stream().map(Entry::contender).toList();
      Turns turns = new Turns(contenders, settings.repeats(), last, System::nanoTime);
      found.begin(() -> points(block, entries, turns));
      turns.run(() -> prepare(block), warmsUp(block, entries), deadline);
      for (Absence failure : turns.failures()) {
        found.failed(block.place(), new Absence(failure.what(), withoutPaths(failure.reason())));
      }
      if (turns.leftOut() > 0) {
        absent(
            block.title() + ", " + turns.leftOut() + " of " + entries.size() + " points", usedUp());
      }
    } finally {
      entries.forEach(entry -> entry.contender().close());
    }
  }

  /// None, with the reason kept, where the machine lacks what they need.
  private List<Entry> contenders(Block block) throws Exception {
    try {
      return block.contenders().make();
    } catch (DeviceUnavailableException | TransferException e) {
      absent(block.title(), Turns.reason(e));
      return List.of();
    }
  }

  /// What runs on cold files ran on hot ones before, and a fresh process is never warm.
  private static boolean warmsUp(Block block, List<Entry> entries) {
    return block.heat() != Heat.COLD
        && entries.stream().noneMatch(entry -> entry.group() == Group.FIRST_LOAD);
  }

  private static List<Point> points(Block block, List<Entry> entries, Turns turns) {
    List<Point> points = new ArrayList<>();
    for (int i = 0; i < entries.size(); i++) {
      Entry entry = entries.get(i);
      Contender contender = entry.contender();
      List<Double> seconds = turns.seconds(i);
      if (!seconds.isEmpty()) {
        points.add(
            new Point(
                entry.group(),
                contender.name(),
                block.what(),
                contender instanceof LinkCeiling ? Heat.NONE : block.heat(),
                entry.bytes(),
                seconds.stream().map(time -> entry.bytes() / 1e9 / time).toList(),
                entry.ceiling(),
                entry.parameters(),
                contender.note()));
      }
    }
    return points;
  }

  /// Why files cannot be made cold; empty where they can.
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
