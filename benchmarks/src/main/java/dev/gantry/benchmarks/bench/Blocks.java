// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.bench.Block.Entry;
import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.Threads;
import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.core.Device;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/// Chooses what a bench measures.
record Blocks(Settings settings, GantrySession session, Findings found, PythonPeers python) {
  private static final long MIB = 1 << 20;
  private static final int MAX_COPY_BYTES = 256 << 20;
  private static final long MAX_TRACED_BYTES = 1L << 30;
  private static final int CORES = Runtime.getRuntime().availableProcessors();

  /// Returns all blocks, the ceilings first, since their results decide which of them take turns with
  /// loads.
  List<Block> all(List<Subject> subjects, ChildJvm first) {
    List<Block> blocks = new ArrayList<>(ceilings(traced(subjects)));
    for (Subject subject : subjects) {
      for (Heat heat : List.of(Heat.HOT, Heat.COLD)) {
        blocks.add(loads(subject, heat));
      }
    }
    Subject largest = largest(subjects);
    blocks.add(
        block(
            Group.FIRST_LOAD,
            largest,
            Heat.HOT,
            2,
            () -> List.of(Entry.of(Group.FIRST_LOAD, first, largest.bytes(), ""))));
    for (Heat heat : heats()) {
      blocks.add(
          block(
              Group.GRID,
              traced(subjects),
              heat,
              heat == Heat.HOT ? 6 : 3,
              () -> grid(traced(subjects))));
    }
    return blocks;
  }

  static Subject largest(List<Subject> subjects) {
    return largest(subjects, Long.MAX_VALUE);
  }

  /// Returns the largest file for a grid and a traced load.
  static Subject traced(List<Subject> subjects) {
    return largest(subjects, MAX_TRACED_BYTES);
  }

  private static Subject largest(List<Subject> subjects, long mostBytes) {
    List<Subject> large = subjects.stream().filter(Subject::large).toList();
    return large.stream()
        .filter(subject -> subject.bytes() <= mostBytes)
        .max(Comparator.comparingLong(Subject::bytes))
        .orElse(large.getFirst());
  }

  private List<Heat> heats() {
    return settings.quick() ? List.of(Heat.HOT) : List.of(Heat.HOT, Heat.COLD);
  }

  private static Block block(
      Group group, Subject subject, Heat heat, double weight, Block.Contenders contenders) {
    return new Block(group, subject.what(), heat, List.of(subject.file()), weight, contenders);
  }

  /// Returns the powers of 2 up to `most`.
  private List<Integer> threads(int most) {
    List<Integer> counts = new ArrayList<>();
    for (int count = 1; count <= most; count *= 2) {
      counts.add(count);
    }
    return settings.quick() && counts.size() > 2
        ? List.of(counts.getFirst(), counts.getLast())
        : counts;
  }

  private List<Block> ceilings(Subject subject) {
    Path file = subject.file();
    Path target = settings.folder().resolve("written.bin");
    long copied = Math.clamp(subject.bytes() / MIB * MIB, MIB, MAX_COPY_BYTES);
    long written = Math.clamp(subject.bytes(), 8 * MIB, 512 * MIB) / (8 * MIB) * (8 * MIB);
    List<Block> blocks = new ArrayList<>();
    blocks.add(
        ceiling(
            "memory",
            Heat.NONE,
            List.of(),
            0.5,
            threads(CORES),
            count -> HostCeilings.memoryCopy(count, copied),
            copied));
    blocks.add(
        ceiling(
            subject.what(),
            Heat.HOT,
            List.of(file),
            1,
            threads(Math.min(16, 2 * CORES)),
            count -> HostCeilings.pageCache(file, count),
            size(file)));
    blocks.add(
        ceiling(
            subject.what(),
            Heat.COLD,
            List.of(file),
            2,
            threads(Math.clamp(2L * CORES, 8, 16)),
            count -> HostCeilings.directRead(file, count),
            size(file)));
    blocks.add(
        ceiling(
            written / MIB + " MiB",
            Heat.NONE,
            List.of(),
            2,
            settings.quick() ? List.of(4) : List.of(1, 4),
            count -> HostCeilings.directWrite(target, count, written),
            written));
    if (settings.device() instanceof Device.Cuda cuda) {
      blocks.add(
          ceiling(
              "link",
              Heat.NONE,
              List.of(),
              0.5,
              List.of(true, false),
              toDevice -> LinkCeiling.of(cuda, toDevice),
              LinkCeiling.BYTES));
    }
    return blocks;
  }

  /// @param ways in which the ceiling is measured, such as by numbers of threads
  /// @param bytes of one run
  private static <T> Block ceiling(
      String what,
      Heat heat,
      List<Path> files,
      double weight,
      List<T> ways,
      Function<T, Contender> contender,
      long bytes) {
    return new Block(
        Group.CEILING,
        what,
        heat,
        files,
        weight,
        () -> ways.stream().map(way -> Entry.ceiling(contender.apply(way), bytes)).toList());
  }

  private static long size(Path file) {
    return file.toFile().length();
  }

  /// Returns the number of threads of the best measured ceiling of a kind.
  private int bestThreads(String kind) {
    return found.points().stream()
        .filter(point -> point.group() == Group.CEILING && point.name().startsWith(kind))
        .max(Comparator.comparingDouble(Point::median))
        .map(point -> Integer.parseInt(point.name().substring(kind.length()).replaceAll("\\D", "")))
        .orElse(1);
  }

  private Block loads(Subject subject, Heat heat) {
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
          List<Contender> loads = new ArrayList<>(ours(subject, heat == Heat.HOT));
          loads.addAll(python.contenders(subject.file(), spare));
          loads.addAll(jvmPeers(subject));
          List<Entry> entries = new ArrayList<>(List.of(ceiling));
          String name = ceiling.contender().name();
          loads.forEach(load -> entries.add(Entry.of(Group.LOAD, load, subject.bytes(), name)));
          return entries;
        });
  }

  /// Returns the ceiling that takes turns with the contenders that are compared with it.
  private Entry ceilingOf(Subject subject, Heat heat) {
    Path file = subject.file();
    if (heat == Heat.HOT && settings.device() instanceof Device.Cuda cuda) {
      return Entry.ceiling(LinkCeiling.of(cuda, true), LinkCeiling.BYTES);
    }
    return Entry.ceiling(
        heat == Heat.COLD
            ? HostCeilings.directRead(file, bestThreads("O_DIRECT read"))
            : HostCeilings.pageCache(file, bestThreads("page cache")),
        size(file));
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

  private List<Contender> jvmPeers(Subject subject) {
    List<Contender> peers = new ArrayList<>();
    long heap = Runtime.getRuntime().maxMemory();
    String djl = "DJL NDList.decode, " + subject.what();
    if (!subject.decodable()) {
      found.absent(djl, "it does not know all of the types");
    } else if (2 * subject.bytes() > heap || subject.bytes() > Integer.MAX_VALUE - MIB) {
      found.absent(djl, "it needs an array of the heap, which has " + heap / MIB + " MiB");
    } else {
      peers.add(JvmPeers.djl(subject.file()));
    }
    peers.add(JvmPeers.channel(subject.file(), 1));
    if (CORES > 1) {
      peers.add(JvmPeers.channel(subject.file(), Math.min(CORES, 16)));
    }
    return peers;
  }

  /// Makes loads by the best transport for each size of a request and number of threads.
  private List<Entry> grid(Subject subject) {
    boolean quick = settings.quick();
    List<Entry> entries = new ArrayList<>();
    for (long kib : quick ? new long[] {1024, 8192} : new long[] {256, 1024, 4096, 8192, 16384}) {
      for (int threads :
          quick
              ? new int[] {1, 2, 4}
              : CORES < 8 ? new int[] {1, 2, 4, 8} : new int[] {1, 4, 8, 12, 16}) {
        String size = kib < 1024 ? kib + " KiB" : kib / 1024 + " MiB";
        TransferOptions options =
            TransferOptions.defaults()
                .withThreads(threads)
                .withLimits(PlanLimits.DEFAULT.withRequestBytes(kib << 10));
        entries.add(
            new Entry(
                Group.GRID,
                load("Gantry, " + size + ", " + Threads.count(threads), subject, options, false),
                subject.bytes(),
                "",
                Map.of(Point.REQUEST_BYTES, kib << 10, Point.THREADS, (long) threads)));
      }
    }
    return entries;
  }
}
