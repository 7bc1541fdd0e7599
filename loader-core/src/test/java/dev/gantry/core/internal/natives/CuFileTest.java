// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Availability.Absent;
import dev.gantry.testing.stub.NativeStubs;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The binding against a library that a C compiler built: structs, results by value, errno, and
/// counts.
class CuFileTest {
  private static final int LENGTH = 3 * 4096;

  private CuFile cuFile;
  private StubControls stub;
  private byte[] bytes;
  private TestFile file;

  @BeforeEach
  void setUp(@TempDir Path folder) throws IOException {
    cuFile = CuFile.load(NativeStubs.cuFile().toString()).orElseThrow(AssertionError::new);
    stub = StubControls.of(NativeStubs.cuFile());
    stub.clear();
    bytes = new byte[LENGTH];
    new Random(7).nextBytes(bytes);
    file = TestFile.open(Files.write(folder.resolve("weights"), bytes));
  }

  @AfterEach
  void nothingIsLeft() {
    file.close();
    stub.clear();
    stub.limit(-1);
    for (String figure : List.of("opened", "handles", "buffers", "registered bytes", "disorder")) {
      assertThat(stub.count(figure)).as(figure).isZero();
    }
  }

  @Test
  void readsIntoTheRegisteredBufferAtItsOffset() {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(5 * 4096, 4096);
      cuFile.registerBuffer(buffer);
      assertThat(stub.count("registered bytes")).isEqualTo(5 * 4096);

      assertThat(cuFile.read(handle, buffer, 8192, 4096, 8192)).isEqualTo(8192);

      assertThat(buffer.asSlice(8192, 8192).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(Arrays.copyOfRange(bytes, 4096, 12288));
      assertThat(stub.count("wrong base")).isZero();
      cuFile.deregisterBuffer(buffer);
    }
    cuFile.closeDriver();
  }

  @Test
  void writesWhatItIsGiven() throws IOException {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(4096).fill((byte) 42);

      assertThat(cuFile.write(handle, buffer, 100, LENGTH, 0)).isEqualTo(100);
    }
    cuFile.closeDriver();
    assertThat(Files.size(file.path())).isEqualTo(LENGTH + 100);
    assertThat(Files.readAllBytes(file.path())).endsWith(42, 42);
  }

  @Test
  void countsShortReadsAndTheEndOfTheFile() {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(LENGTH);
      stub.limit(1000);
      assertThat(cuFile.read(handle, buffer, LENGTH, 0, 0)).isEqualTo(1000);
      stub.limit(-1);
      assertThat(cuFile.read(handle, buffer, LENGTH, LENGTH - 10, 0)).isEqualTo(10);
      assertThat(cuFile.read(handle, buffer, LENGTH, LENGTH, 0)).isZero();
    }
    cuFile.closeDriver();
  }

  @ParameterizedTest
  @CsvSource({
    // The columns are: returned value, errno, whose code the failure has, code, name.
    "-1, 5, Errno, 5, EIO",
    "-1, 28, Errno, 28, ENOSPC",
    "-1, 5027, CuFile, 5027, CU_FILE_HANDLE_NOT_REGISTERED",
    "-1, 0, Errno, 0, unknown",
    "-5017, 5, CuFile, 5017, CU_FILE_INVALID_MAPPING_RANGE",
    "-5999, 0, CuFile, 5999, unknown",
    "-22, 0, CuFile, -22, unknown",
    "-5000, 0, CuFile, -5000, unknown",
    // A count above the requested length is an error: libcufile in compatibility mode has returned
    // codes without their sign.
    "5006, 0, CuFile, 5006, CU_FILE_DRIVER_CLOSING",
    "4097, 0, CuFile, 4097, unknown",
    "-9223372036854775808, 0, CuFile, -2147483648, unknown",
  })
  void tellsTheLayersOfFailureApart(long returned, int errno, String layer, int code, String name) {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(4096);
      stub.fail("cuFileRead", 2, returned, errno);
      assertThat(cuFile.read(handle, buffer, 4096, 0, 0)).isEqualTo(4096);

      assertThatThrownBy(() -> cuFile.read(handle, buffer, 4096, 8192, 0))
          .asInstanceOf(type(TransferException.class))
          .satisfies(thrown -> {
            assertThat(thrown.operation()).isEqualTo("cuFileRead");
            assertThat(thrown).hasMessageContaining(file.path() + " at offset 8192, length 4096");
            assertThat(thrown.failure().getClass().getSimpleName()).isEqualTo(layer);
            assertThat(thrown.failure().describe()).contains(" " + code + " " + name + ": ");
          });
    }
    cuFile.closeDriver();
  }

  @ParameterizedTest
  @ValueSource(ints = {5001, 5006, 5022, 5050})
  void aShortCountThatIsACodeIsAFailure(int code) {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(LENGTH);
      stub.fail("cuFileRead", 1, code, 0);
      assertThatThrownBy(() -> cuFile.read(handle, buffer, LENGTH, 0, 0))
          .asInstanceOf(type(TransferException.class))
          .extracting(TransferException::failure)
          .isEqualTo(CuFileCode.failure(code));
      stub.fail("cuFileWrite", 1, code, 0);
      assertThatThrownBy(() -> cuFile.write(handle, buffer, LENGTH, 0, 0))
          .asInstanceOf(type(TransferException.class))
          .extracting(TransferException::failure)
          .isEqualTo(CuFileCode.failure(code));
    }
    cuFile.closeDriver();
  }

  @Test
  void aShortCountThatIsNoCodeOrEndsTheFileIsACount() throws IOException {
    cuFile.openDriver();
    Files.write(file.path(), Arrays.copyOf(bytes, 4096 + 5006));
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(LENGTH);
      assertThat(cuFile.read(handle, buffer, 8192, 4096, 0)).isEqualTo(5006);
      // The table of codes has no 5021.
      stub.limit(5021);
      assertThat(cuFile.read(handle, buffer, 8192, 0, 0)).isEqualTo(5021);
      assertThat(cuFile.write(handle, buffer, 8192, 0, 0)).isEqualTo(5021);
      // A count equal to the requested length is a count, even if a code has its value.
      stub.limit(-1);
      assertThat(cuFile.read(handle, buffer, 5006, 0, 0)).isEqualTo(5006);
    }
    cuFile.closeDriver();
  }

  @Test
  void refusesARangeOutsideTheBuffer() {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined();
        CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor())) {
      MemorySegment buffer = arena.allocate(4096);
      assertThatThrownBy(() -> cuFile.read(handle, buffer, 4096, 0, 1))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThat(stub.calls("cuFileRead")).isZero();
    }
    cuFile.closeDriver();
  }

  @Test
  void aClosedHandleSaysSo() {
    cuFile.openDriver();
    CuFileHandle handle = cuFile.registerHandle(file.path(), file.descriptor());
    handle.close();
    handle.close();
    assertThat(stub.calls("cuFileHandleDeregister")).isEqualTo(1);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(1);
      assertThatThrownBy(() -> cuFile.read(handle, buffer, 1, 0, 0))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("closed");
    }
    cuFile.closeDriver();
  }

  @Test
  void aDriverThatDoesNotOpen() {
    stub.fail("cuFileDriverOpen", 1, 5007, 0);

    assertThatThrownBy(cuFile::openDriver)
        .hasMessageStartingWith("cuFileDriverOpen failed: ")
        .asInstanceOf(type(TransferException.class))
        .extracting(TransferException::failure)
        .isEqualTo(CuFileCode.failure(5007));
    assertThat(stub.count("opened")).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void everyCodeIsReportedWithItsName(CuFileCode code) {
    stub.fail("cuFileDriverOpen", 1, code.code(), 0);
    assertThatThrownBy(cuFile::openDriver)
        .hasMessageContaining("cuFile " + code.code() + " " + code.name() + ": ");
  }

  @Test
  void passesOnTheCudaDriversCode() {
    stub.fail("cuFileDriverOpen", 1, 5011, 100);

    assertThatThrownBy(cuFile::openDriver)
        .asInstanceOf(type(TransferException.class))
        .extracting(TransferException::failure)
        .isEqualTo(new Failure.Cuda(100, "CUDA_ERROR_NO_DEVICE", "reported through cuFile"));
  }

  @ParameterizedTest
  @ValueSource(ints = {5008, 5019, 5027})
  void aFileThatCannotBeRegistered(int code) {
    cuFile.openDriver();
    stub.fail("cuFileHandleRegister", 1, code, 0);

    assertThatThrownBy(() -> cuFile.registerHandle(file.path(), file.descriptor()))
        .hasMessageContaining(file.path().toString())
        .asInstanceOf(type(TransferException.class))
        .extracting(TransferException::failure)
        .isEqualTo(CuFileCode.failure(code));
    cuFile.closeDriver();
  }

  @Test
  void aBufferThatCannotBeRegistered() {
    cuFile.openDriver();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment buffer = arena.allocate(4096, 4096);
      stub.fail("cuFileBufRegister", 1, 5036, 0);
      assertThatThrownBy(() -> cuFile.registerBuffer(buffer))
          .hasMessageContaining("4096 bytes at 0x")
          .hasMessageContaining("CU_FILE_GPU_MEMORY_PINNING_FAILED");
      assertThatThrownBy(() -> cuFile.deregisterBuffer(buffer))
          .hasMessageContaining("CU_FILE_MEMORY_NOT_REGISTERED");
    }
    cuFile.closeDriver();
  }

  @Test
  void countsWhoOpenedTheDriver() {
    cuFile.openDriver();
    cuFile.openDriver();
    assertThat(stub.count("opened")).isEqualTo(2);
    cuFile.closeDriver();
    cuFile.closeDriver();
    assertThatThrownBy(cuFile::closeDriver).hasMessageContaining("5001");
  }

  @Test
  void aLibraryThatIsNotThereIsAReason() {
    Availability<CuFile> absent = CuFile.load("/nowhere/libcufile.so.0");

    assertThat(absent).isInstanceOf(Absent.class);
    assertThat(((Absent<CuFile>) absent).reason())
        .contains("/nowhere/libcufile.so.0")
        .contains("No such file");
  }

  @Test
  void aFolderIsNoLibrary() {
    Path folder = NativeStubs.folder();
    assertThat(CuFile.load(folder.toString()))
        .isEqualTo(new Absent<CuFile>(folder + ": it is a folder"));
  }

  @Test
  void anotherLibraryIsNotCuFile() {
    assertThat(CuFile.load("libc.so.6"))
        .isEqualTo(new Absent<CuFile>("libc.so.6 has no cuFileDriverOpen"));
  }

  @Test
  void anOldLibraryLacksOnlyWhatIsNew() {
    CuFile old = CuFile.load(NativeStubs.oldCuFile().toString()).orElseThrow(AssertionError::new);

    assertThat(old.version())
        .isEqualTo(new Absent<CuFile.Version>(old.libraryName() + " has no cuFileGetVersion"));
    assertThat(old.hasFlags()).isFalse();
    assertThat(CuFileParameters.of(old)).isInstanceOf(Absent.class);
    assertThat(CuFileStatistics.of(old)).isInstanceOf(Absent.class);
    assertThat(old.useCount()).isInstanceOf(Absent.class);
    assertThat(old.barSizeKib(0)).isInstanceOf(Absent.class);
    old.openDriver();
    assertThat(old.properties().allowsCompatMode()).isTrue();
    old.closeDriver();
  }
}
