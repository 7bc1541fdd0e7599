// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The rules for all writes, from every memory and with every transport: all bytes are exact, and
/// files have exactly their length; the report names the transports; and no resource is left.
@ExtendWith(NoLeaks.class)
public abstract class WriteContract {
  static final int REQUEST = 16 << 10;
  private static final int LENGTH = 1_000_001;
  private static final byte[] BYTES = TestFiles.bytes(31, LENGTH);

  /// The kind of memory that holds a part's bytes.
  protected enum Place {
    DEVICE,
    HEAP,
    FILE
  }

  /// A part whose bytes are known.
  protected record Part(Place place, int from, int length) {
    byte[] bytes() {
      return Arrays.copyOfRange(BYTES, from, from + length);
    }
  }

  @TempDir Path folder;
  final GantrySession gantry = GantrySession.open();
  private Path bytes;
  private Loaded memory;

  /// The device that holds the bytes of most parts; a GPU by default.
  protected Device device() {
    return new Device.Cuda(0);
  }

  /// The transport that the write must use; null lets the transfer engine choose.
  protected @Nullable Transport transport() {
    return null;
  }

  /// The transports that the report may name for bytes of the device.
  protected Set<Transport> carriers() {
    Transport only = transport();
    return only == null ? Set.of(Transport.GDS, Transport.STAGED) : Set.of(only);
  }

  @BeforeEach
  void fillMemory() {
    bytes = TestFiles.write(folder.resolve("bytes"), 31, LENGTH);
    Transport load = device().equals(Device.HOST) ? Transport.HOST : Transport.STAGED;
    memory =
        gantry.load(
            List.of(new ExtentRequest(new Extent(bytes, 0, LENGTH), 256)),
            device(),
            TransferOptions.defaults().withTransport(load));
  }

  @AfterEach
  void close() {
    memory.close();
    gantry.close();
  }

  static Part part(int from, int length) {
    return new Part(Place.DEVICE, from, length);
  }

  /// Returns the part as a source for [GantrySession].
  Source source(Part part) {
    return switch (part.place()) {
      case DEVICE -> {
        Region region = memory.regions().getFirst();
        yield switch (device()) {
          case Device.Host _ -> new Memory.OnHost(segment(region).asSlice(part.from, part.length));
          case Device.Cuda cuda ->
              new Memory.OnDevice(cuda, region.address() + part.from, part.length);
        };
      }
      case HEAP -> new Memory.OnHost(MemorySegment.ofArray(part.bytes()));
      case FILE -> new Source.FilePart(new Extent(bytes, part.from, part.length));
    };
  }

  private static MemorySegment segment(Region region) {
    CpuSlab slab = (CpuSlab) Objects.requireNonNull(region.slab());
    return slab.segment().asSlice(region.offset(), region.length());
  }

  WriteOptions options() {
    return WriteOptions.defaults().withTransport(transport()).withRequestBytes(REQUEST);
  }

  WriteReport write(Path file, WriteOptions options, Part... parts) {
    return write(Map.of(file, List.of(parts)), options);
  }

  WriteReport write(Map<Path, List<Part>> files, WriteOptions options) {
    List<NewFile> all =
        files.entrySet().stream()
            .map(file ->
                new NewFile(file.getKey(), file.getValue().stream().map(this::source).toList()))
            .toList();
    WriteReport report = gantry.write(all, options);
    files.keySet().forEach(file -> assertThat(temporaries(file.getParent())).isEmpty());
    for (WriteReport.FileReport file : report.files()) {
      check(file, Objects.requireNonNull(files.get(file.file())), options);
    }
    assertThat(report.files())
        .extracting(WriteReport.FileReport::file)
        .containsExactlyElementsOf(all.stream().map(NewFile::file).toList());
    checkCarriers(report, files.values().stream().flatMap(List::stream).toList());
    assertThat(report.writes())
        .isEqualTo(
            all.stream().mapToLong(f -> Math.ceilDiv(f.size(), options.requestBytes())).sum());
    return report;
  }

  private static void check(WriteReport.FileReport report, List<Part> parts, WriteOptions options) {
    byte[] written = read(report.file());
    byte[] expected = new byte[parts.stream().mapToInt(Part::length).sum()];
    int at = 0;
    for (Part part : parts) {
      System.arraycopy(BYTES, part.from, expected, at, part.length);
      at += part.length;
    }
    assertThat(Arrays.mismatch(written, expected)).as("%s %s", report.file(), parts).isEqualTo(-1);
    assertThat(report.size()).isEqualTo(written.length);
    assertThat(report.checksums().isPresent()).isEqualTo(options.checksums());
    report
        .checksums()
        .ifPresent(sums -> {
          assertThat(sums.file()).isEqualTo(Crc32c.of(MemorySegment.ofArray(written)));
          assertThat(sums.parts())
              .containsExactlyElementsOf(
                  parts.stream()
                      .map(part -> Crc32c.of(MemorySegment.ofArray(part.bytes())))
                      .toList());
        });
  }

  private void checkCarriers(WriteReport report, List<Part> parts) {
    boolean host = device().equals(Device.HOST);
    long fromDevice = 0;
    for (Part part : parts) {
      fromDevice += part.place() == Place.DEVICE && !host ? part.length : 0;
    }
    long carried = 0;
    for (Map.Entry<Transport, Long> path : report.bytesByTransport().entrySet()) {
      if (path.getKey() != Transport.HOST) {
        assertThat(carriers()).contains(path.getKey());
        carried += path.getValue();
      }
    }
    assertThat(carried).as("from the device").isEqualTo(fromDevice);
    assertThat(report.bytesByTransport().getOrDefault(Transport.HOST, 0L) + carried)
        .isEqualTo(report.bytes());
    assertThat(report.bytesByTransport().values()).doesNotContain(0L);
  }

  static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<Path> temporaries(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(TemporaryName::is).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private boolean hasDirectIo() {
    return gantry.diagnose(Location.of(bytes), Device.HOST).directAbsence().isEmpty();
  }

  private List<Part> anyParts(Random random, int count, int most) {
    List<Part> parts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int length = random.nextInt(most + 1);
      Place place = Place.values()[random.nextInt(Place.values().length)];
      parts.add(new Part(place, random.nextInt(LENGTH - length + 1), length));
    }
    return parts;
  }

  @ParameterizedTest
  @ValueSource(
      ints = {0, 1, 511, 4095, 4096, 4097, REQUEST - 1, REQUEST, REQUEST + 1, 5 * REQUEST + 4095})
  void sizesAroundBlocksAndRequests(int size) {
    for (int from : new int[] {0, 1, 512, 4096}) {
      for (boolean checksums : new boolean[] {false, true}) {
        WriteReport _ =
            write(folder.resolve("file"), options().withChecksums(checksums), part(from, size));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void pastThePageCacheUnlessItIsWanted(boolean pageCache) {
    assumeTrue(
        !pageCache || transport() != Transport.GDS, "gds is past the page cache or not at all");
    WriteReport report =
        write(
            folder.resolve("file"),
            options().withPageCache(pageCache),
            part(0, 300_001),
            new Part(Place.HEAP, 5, 70_000),
            new Part(Place.FILE, 77, 70_000));
    assertThat(report.directBytes()).isEqualTo(!pageCache && hasDirectIo() ? 440_001 : 0);
    if (pageCache) {
      assertThat(report.files().getFirst().reason()).contains("not wanted");
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void manySmallPartsOfAllPlaces(long seed) {
    Random random = new Random(seed);
    List<Part> parts = anyParts(random, 1000, 300);
    WriteReport _ = write(folder.resolve("seed" + seed), options(), parts.toArray(new Part[0]));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5, 16})
  void anyPartsOfSeveralFilesByAnyNumberOfWriters(int threads) throws IOException {
    Path other = Files.createDirectories(folder.resolve("other"));
    Random random = new Random(threads);
    for (boolean checksums : new boolean[] {false, true}) {
      Map<Path, List<Part>> files = new LinkedHashMap<>();
      for (int i = 0; i < 6; i++) {
        Path file = (i % 2 == 0 ? folder : other).resolve("file" + i);
        files.put(file, anyParts(random, random.nextInt(20), i % 3 == 0 ? 300 : 70_000));
      }
      files.put(folder.resolve("aligned"), List.of(part(0, 12 * REQUEST)));
      WriteReport _ = write(files, options().withThreads(threads).withChecksums(checksums));
    }
  }

  @Test
  void aRequestOfBytesFromEverywhere() {
    WriteReport report =
        write(
            folder.resolve("file"),
            options(),
            part(1, 5000),
            new Part(Place.HEAP, 2, 3000),
            part(3, 0),
            new Part(Place.FILE, 4, 4000),
            part(5, 384));
    assertThat(report.writes()).isEqualTo(1);
    assertThat(report.bytesByTransport())
        .containsExactlyInAnyOrderEntriesOf(
            device().equals(Device.HOST)
                ? Map.of(Transport.HOST, 12_384L)
                : Map.of(Transport.STAGED, 5384L, Transport.HOST, 7000L));
  }

  @Test
  void onePathServesWriteAfterWrite() {
    for (int i = 0; i < 5; i++) {
      // Requests that grow from write to write need larger buffers; each write replaces the file
      // of the write before.
      WriteReport _ =
          write(
              folder.resolve("file"),
              options().withRequestBytes(4096L << i).withThreads(3),
              part(i, 200_000 - 7 * i));
    }
  }

  @Test
  void aFileSystemInMemory() throws IOException {
    Path memory = Path.of("/dev/shm");
    assumeTrue(Files.isWritable(memory), "no tmpfs");
    Path inMemory = Files.createTempDirectory(memory, "gantry");
    try {
      WriteReport _ = write(inMemory.resolve("file"), options(), part(0, 100_001), part(9, 4097));
      Files.delete(inMemory.resolve("file"));
    } catch (DeviceUnavailableException e) {
      // libcufile accepts only files on disks.
      assertThat(transport()).isIn(Transport.GDS, Transport.COMPAT);
    } finally {
      Files.delete(inMemory);
    }
  }

  @Test
  void nothingToWrite() {
    WriteReport none = write(Map.of(), options());
    assertThat(none.files()).isEmpty();
    WriteReport empty = write(folder.resolve("empty"), options(), part(0, 0), part(5, 0));
    assertThat(empty.bytesByTransport()).isEmpty();
    assertThat(empty.writes()).isZero();
  }

  @Test
  void cancelledBeforeItBegan() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "old");
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    TransferException failure =
        catchThrowableOfType(
            TransferException.class,
            () -> write(file, options().withCancellation(cancellation), part(0, LENGTH)));
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    assertThat(file).hasContent("old");
    assertThat(temporaries(folder)).isEmpty();
  }

  @Test
  void cancelledByItsListenerWhenAllIsWritten() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "old");
    Cancellation cancellation = new Cancellation();
    WriteOptions options =
        options()
            .withCancellation(cancellation)
            .withProgress((done, total) -> {
              if (done == total) {
                cancellation.cancel();
              }
            });
    assertThat(catchThrowable(() -> write(file, options, part(0, 100_000), part(3, 50_000))))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cancelled");
    assertThat(file).hasContent("old");
    assertThat(temporaries(folder)).isEmpty();
  }

  @Test
  void aListenerThatThrows() throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "old");
    IllegalStateException mine = new IllegalStateException("mine");
    WriteOptions options =
        options()
            .withProgress((_, _) -> {
              throw mine;
            });
    assertThat(catchThrowable(() -> write(file, options, part(0, LENGTH)))).isSameAs(mine);
    assertThat(file).hasContent("old");
    assertThat(temporaries(folder)).isEmpty();
  }
}
