// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The rules for all transports: all bytes are exact, on every device and for every division into
/// extents; the report names the transports; and no resource is left.
@ExtendWith(NoLeaks.class)
public abstract class TransportContract {
  static final int LENGTH = 3_000_001;

  @TempDir Path folder;
  final GantrySession gantry = GantrySession.open();
  Path first;
  private Path second;

  /// The device that receives the bytes; a GPU by default.
  protected Device device() {
    return new Device.Cuda(0);
  }

  /// The transport that the load must use; null lets the transfer engine choose.
  protected @Nullable Transport transport() {
    return null;
  }

  /// The transports that the report may name for this load.
  protected Set<Transport> carriers() {
    Transport only = transport();
    return only == null ? Set.of(Transport.GDS, Transport.STAGED) : Set.of(only);
  }

  @BeforeEach
  void writeFiles() {
    first = TestFiles.write(folder.resolve("first"), 21, LENGTH);
    second = TestFiles.write(folder.resolve("second"), 22, LENGTH);
  }

  @AfterEach
  void close() {
    gantry.close();
  }

  TransferOptions options() {
    return TransferOptions.defaults()
        .withTransport(transport())
        .withLimits(new PlanLimits(64 << 10, 16 << 10, 1 << 20));
  }

  static ExtentRequest wanted(Path file, long offset, long length, int alignment) {
    return new ExtentRequest(new Extent(file, offset, length), alignment);
  }

  TransferReport loadAndCompare(List<ExtentRequest> wanted, TransferOptions options) {
    try (Loaded loaded = gantry.load(wanted, device(), options)) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
      TransferReport report = loaded.report();
      assertThat(report.bytesByTransport().keySet()).isSubsetOf(carriers());
      assertThat(report.bytes())
          .isEqualTo(Planner.plan(wanted, options.limits()).readBytes())
          .isGreaterThanOrEqualTo(report.directBytes());
      return report;
    }
  }

  @ParameterizedTest
  @EnumSource
  void wholeFilesHotAndCold(CachePolicy policy) {
    List<ExtentRequest> wanted = List.of(wanted(first, 0, LENGTH, 8), wanted(second, 0, LENGTH, 8));
    TransferOptions options = options().withCachePolicy(policy);
    TransferReport hot;
    try (Arena arena = Arena.ofConfined()) {
      PageCache.keep(first, 0, LENGTH, arena);
      PageCache.keep(second, 0, LENGTH, arena);
      hot = loadAndCompare(wanted, options);
    }
    assertThat(hot.files())
        .extracting(TransferReport.FileReport::file)
        .containsExactly(Location.of(first), Location.of(second));
    if (policy != CachePolicy.DIRECT) {
      assertThat(hot.directBytes()).as("in the page cache").isZero();
    }
    boolean cold = PageCache.drop(first) && PageCache.drop(second);
    TransferReport next = loadAndCompare(wanted, options);
    if (policy == CachePolicy.BUFFERED) {
      assertThat(next.directBytes()).isZero();
    } else if (cold && hasDirectReads()) {
      // Not all bytes need to be direct: cuFile may read through the page cache, and readahead may
      // make later bytes hot.
      assertThat(next.directBytes()).isPositive();
    }
    if (policy == CachePolicy.DIRECT && hasDirectReads()) {
      assertThat(next.directBytes()).isEqualTo(next.bytes());
    }
  }

  private boolean hasDirectReads() {
    return gantry.diagnose(Location.of(first), Device.HOST).directAbsence().isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5, 16})
  void anyExtentsOfBothFilesByAnyNumberOfReaders(int threads) {
    Random random = new Random(threads);
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      int length = random.nextInt(i % 2 == 0 ? 300 : 150_000);
      int offset = random.nextInt(LENGTH - length + 1);
      wanted.add(
          wanted(random.nextBoolean() ? first : second, offset, length, 1 << random.nextInt(9)));
    }
    for (CachePolicy policy : CachePolicy.values()) {
      TransferReport report =
          loadAndCompare(wanted, options().withThreads(threads).withCachePolicy(policy));
      assertThat(report.reads()).isPositive();
    }
  }

  @Test
  void aByteHereAndThere() {
    TransferReport report =
        loadAndCompare(
            List.of(
                wanted(first, 0, 1, 1),
                wanted(first, 1_000_003, 1, 256),
                wanted(first, LENGTH - 1, 1, 1),
                wanted(second, 4095, 2, 1),
                wanted(second, 7, 0, 8)),
            options());
    assertThat(report.bytes()).isEqualTo(5 * 4096);
  }

  @Test
  void manySlabsOfOneBlock() {
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      wanted.add(wanted(first, i * 10_000L + i, 4000, 4));
    }
    TransferReport report =
        loadAndCompare(wanted, options().withLimits(new PlanLimits(4096, 0, 4096)));
    assertThat(report.bytes()).isEqualTo(report.reads() * 4096);
  }

  @Test
  void onePathServesLoadAfterLoad() {
    for (int i = 0; i < 5; i++) {
      loadAndCompare(List.of(wanted(first, i * 100_000L, 400_000, 8)), options().withThreads(3));
      // Requests that grow from load to load need larger buffers.
      loadAndCompare(
          List.of(wanted(second, 0, LENGTH, 8)),
          options().withLimits(PlanLimits.DEFAULT.withRequestBytes((128L << 10) << i)));
    }
  }

  @Test
  void nothingWantedNothingCarried() {
    TransferReport report = loadAndCompare(List.of(wanted(first, 5, 0, 8)), options());
    assertThat(report.bytesByTransport()).isEmpty();
  }

  @Test
  void aFileThatIsTooShort() {
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () ->
                gantry.load(
                    List.of(wanted(second, 0, 100, 1), wanted(first, LENGTH - 10, 15, 1)),
                    device(),
                    options()));
    assertThat(failure.failure()).isEqualTo(new Failure.EndOfFile(5));
    assertThat(failure).hasMessageContaining(first.toString());
  }

  @Test
  void cancelledBeforeItBegan() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () ->
                gantry.load(
                    List.of(wanted(first, 0, LENGTH, 1)),
                    device(),
                    options().withCancellation(cancellation)));
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
  }

  /// Checksums of tensors that overlap or are adjacent, and that a load reads only in part.
  private List<KnownChecksums.Known> knownSums() {
    List<KnownChecksums.Known> known = new ArrayList<>();
    Random random = new Random(5);
    for (Path file : List.of(first, second)) {
      byte[] bytes = TestFiles.bytes(file.equals(first) ? 21 : 22, LENGTH);
      for (int i = 0; i < 20; i++) {
        int length = random.nextInt(i % 2 == 0 ? 300 : 1_500_000);
        int offset = random.nextInt(LENGTH - length + 1);
        known.add(
            new KnownChecksums.Known(
                new Extent(file, offset, length),
                "tensor " + known.size(),
                Crc32c.of(MemorySegment.ofArray(bytes).asSlice(offset, length))));
      }
    }
    return known;
  }

  @ParameterizedTest
  @EnumSource
  void whatTheCpuReadsIsComparedWithKnownSums(CachePolicy policy) {
    Transport only = transport();
    List<KnownChecksums.Known> known = knownSums();
    TransferOptions options = options().withCachePolicy(policy);
    List<ExtentRequest> whole = List.of(wanted(first, 0, LENGTH, 8), wanted(second, 0, LENGTH, 8));
    if (only == Transport.GDS || only == Transport.COMPAT) {
      TransferOptions verified = options.withChecksums(new KnownChecksums(known));
      assertThatThrownBy(() -> gantry.load(whole, device(), verified))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("brings bytes past it");
      return;
    }
    // Without a given transport, no checksummed read goes past the CPU.
    KnownChecksums all = new KnownChecksums(known);
    TransferReport report = loadAndCompare(whole, options.withChecksums(all));
    assertThat(report.bytesByTransport()).doesNotContainKeys(Transport.GDS, Transport.COMPAT);
    assertThat(all.compare()).isEmpty();

    KnownChecksums some = new KnownChecksums(known);
    List<ExtentRequest> half = List.of(wanted(first, 0, LENGTH / 2, 8));
    var _ = loadAndCompare(half, options.withChecksums(some));
    assertThat(some.compare())
        .as("of which bytes lack")
        .hasSizeBetween(20, known.size() - 1)
        .allMatch(each ->
            each.extent().file().equals(Location.of(second)) || each.extent().end() > LENGTH / 2);
  }

  @ParameterizedTest
  @EnumSource
  void aByteThatIsNotAsItWasIsAnError(CachePolicy policy) throws IOException {
    if (transport() == Transport.GDS || transport() == Transport.COMPAT) {
      return;
    }
    List<KnownChecksums.Known> known = List.of(knownSums().get(1), knownSums().get(21));
    Extent damaged = known.getLast().extent();
    byte[] bytes = Files.readAllBytes(second);
    bytes[Math.toIntExact(damaged.end() - 1)] ^= 4;
    Files.write(second, bytes);
    TransferOptions options =
        options().withCachePolicy(policy).withChecksums(new KnownChecksums(known));
    List<ExtentRequest> tensors =
        known.stream().map(each -> new ExtentRequest(each.extent(), 8)).toList();
    assertThatThrownBy(() -> gantry.load(tensors, device(), options))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining(second.toString())
        .hasMessageContaining("offset " + damaged.offset())
        .hasMessageContaining("checksum-mismatch: tensor 21 has CRC32C");
  }
}
