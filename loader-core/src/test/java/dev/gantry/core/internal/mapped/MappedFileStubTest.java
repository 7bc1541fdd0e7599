// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The driver fails while a file is registered in parts.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class MappedFileStubTest {
  private static final long PART = 64L << 20;
  private static final long LAST = 1L << 20;

  private final StubControls cuda = StubControls.cuda();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final Stores stores = new Stores(Libc.INSTANCE, List.of());
  private RegisteredPages registered;
  private SourceFile file;

  @BeforeEach
  void open(@TempDir Path folder) throws IOException {
    cuda.clear();
    registered = new RegisteredPages(Libc.INSTANCE, folder.resolve("registered"));
    Path path = folder.resolve("sparse");
    try (RandomAccessFile sparse = new RandomAccessFile(path.toFile(), "rw")) {
      sparse.setLength(2 * PART + LAST);
    }
    file = stores.open(Location.of(path), CachePolicy.BUFFERED);
  }

  @AfterEach
  void close() {
    cuda.clear();
    file.close();
    stores.close();
  }

  private MappedFile mapped() {
    registered.add(2 * PART + LAST);
    return new MappedFile(context, registered, Libc.INSTANCE, file);
  }

  @Test
  void aPartThatStaysRegisteredKeepsNoOther() throws IOException {
    long before = cuda.count("registered bytes");
    MappedFile mapped = mapped();
    assertThat(cuda.count("registered bytes") - before).isEqualTo(2 * PART + LAST);
    cuda.fail("cuMemHostUnregister", 1, 1, 0);
    assertThatThrownBy(mapped::close)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cuMemHostUnregister");
    assertThat(cuda.count("registered bytes") - before).isEqualTo(PART);
    assertThat(registered.ownBytes()).isZero();
    assertThat(NoLeaks.mappedFiles()).as("no other memory gets its addresses").hasSize(1);
    giveUp(mapped.address(0), 0, 2 * PART + LAST);
  }

  /// Undoes the registration and the mapping that the failed call has left.
  private void giveUp(long address, long registeredAt, long bytes) {
    try (var _ = context.enter()) {
      context.driver().unpin(new CudaDriver.PinnedMemory(address + registeredAt, 1));
    }
    assertThat(Libc.INSTANCE.munmap(address, bytes)).isZero();
  }

  @Test
  void aRegistrationThatFailsIsUndoneWhole() {
    long before = cuda.count("registered bytes");
    cuda.fail("cuMemHostRegister", 3, 1, 0);
    assertThatThrownBy(this::mapped)
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("cuMemHostRegister");
    assertThat(cuda.count("registered bytes")).isEqualTo(before);
    registered.add(-registered.ownBytes());
  }

  @Test
  void aFileThatStaysRegisteredKeepsNoOther(@TempDir Path folder) {
    long before = cuda.count("registered bytes");
    KeptFiles kept = new KeptFiles(Libc.INSTANCE, stores::open, registered, () -> 1L << 30, 16_384);
    List<SourceFile> files = new ArrayList<>();
    List<Long> addresses = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      Path path = TestFiles.write(folder.resolve("file" + i), i, (int) LAST);
      files.add(stores.open(Location.of(path), CachePolicy.BUFFERED));
      try (KeptFiles.Lease lease =
          kept.lease(context, Map.of(files.getLast(), LAST), true)
              .orElseThrow(AssertionError::new)) {
        addresses.add(lease.file(Location.of(path)).address(0));
      }
    }
    assertThat(cuda.count("registered bytes") - before).isEqualTo(3 * LAST);
    cuda.fail("cuMemHostUnregister", 1, 1, 0);
    assertThatThrownBy(kept::close).isInstanceOf(TransferException.class);
    assertThat(cuda.count("registered bytes") - before).isEqualTo(LAST);
    kept.close();
    giveUp(addresses.getFirst(), 0, LAST);
    files.forEach(SourceFile::close);
  }
}
