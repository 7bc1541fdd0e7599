// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import ai.djl.Device;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// After a failed load the manager has no new array, and no memory or file is held.
@ExtendWith(NoLeaks.class)
class WeightsErrorsTest {
  @TempDir private Path folder;
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void nothingWasLoaded() {
    assertThat(manager.getManagedArrays()).isEmpty();
    NoLeaks.assertNothingIsHeld();
    manager.close();
  }

  @Test
  void aFileThatIsNotThere() {
    Path missing = folder.resolve("missing.safetensors");
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> Weights.open(missing));
    assertThat(failure.failure())
        .isInstanceOfSatisfying(
            Failure.Errno.class, errno -> assertThat(errno.name()).isEqualTo("ENOENT"));
    assertThat(failure).hasMessageContaining(missing.toString());
  }

  @Test
  void aMalformedShardAmongGoodOnes() throws IOException {
    shards();
    Files.write(folder.resolve("2.safetensors"), new byte[] {1, 2, 3});
    assertThatThrownBy(() -> Weights.open(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("2.safetensors");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aShardThatWasCutAfterItsHeaderWasRead(boolean lazy) throws IOException {
    Weights weights = shards();
    Path second = folder.resolve("2.safetensors");
    try (RandomAccessFile file = new RandomAccessFile(second.toFile(), "rw")) {
      file.setLength(file.length() - 1);
    }
    assertThatThrownBy(() -> weights.load(manager, Machine.loadOptions(lazy).build()))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(second.toString(), "changed-meanwhile");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aShardThatIsGoneAfterItsHeaderWasRead(boolean cast) throws IOException {
    Weights weights = shards();
    Files.delete(folder.resolve("3.safetensors"));
    LoadOptions.Builder options = LoadOptions.builder();
    if (cast) {
      options.optCast(DataType.FLOAT32);
    }
    assertThatThrownBy(() -> weights.load(manager, options.build()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("3.safetensors")
        .hasMessageContaining("ENOENT");
  }

  /// The first part is loaded and cast before the second part fails.
  @Test
  void aPartThatFailsTakesTheEarlierOnesWithIt() throws IOException {
    Path big = folder.resolve("1.safetensors");
    // The file is sparse and as large as a slab may be, so the next tensor is in another part.
    WeightsFile.writeSparse(big, "zeros", 512L << 20);
    new WeightsFile().vector("next", DType.BF16, 1).write(folder.resolve("2.safetensors"));
    Weights weights = Weights.open(folder);
    Files.delete(folder.resolve("2.safetensors"));
    LoadOptions options = Machine.loadOptions(true).optCast(DataType.FLOAT32).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("2.safetensors");
  }

  @Test
  void aCancellationBeforeTheLoad() throws IOException {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    assertCancelled(LoadOptions.builder().optCancellation(cancellation));
  }

  /// The loading thread cancels its own load from the progress listener.
  @Test
  void aCancellationInMidLoad() throws IOException {
    Cancellation cancellation = new Cancellation();
    Path file = folder.resolve("large.safetensors");
    WeightsFile.writeSparse(file, "zeros", 1L << 30);
    LoadOptions options =
        LoadOptions.builder()
            .optCancellation(cancellation)
            .optThreads(1)
            .optRequestBytes(4096)
            .optProgress((_, _) -> cancellation.cancel())
            .build();
    Weights weights = Weights.open(file);
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> weights.load(manager, options));
    assertThat(failure).isNotNull();
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
  }

  @Test
  void aCancelledThread() throws IOException {
    Weights weights = shards();
    Thread.currentThread().interrupt();
    try {
      TransferException failure =
          catchThrowableOfType(TransferException.class, () -> weights.load(manager));
      assertThat(failure).isNotNull();
      assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void aListenerThatThrows() throws IOException {
    Weights weights = shards();
    IllegalStateException own = new IllegalStateException("no more");
    LoadOptions progress =
        LoadOptions.builder()
            .optProgress((_, _) -> {
              throw own;
            })
            .build();
    assertThatThrownBy(() -> weights.load(manager, progress)).isSameAs(own);
    LoadOptions report =
        LoadOptions.builder()
            .optReport(_ -> {
              throw own;
            })
            .build();
    assertThatThrownBy(() -> weights.load(manager, report)).isSameAs(own);
  }

  @Test
  void aManagerThatIsClosed() throws IOException {
    Weights weights = shards();
    NDManager closed = NDManager.newBaseManager();
    closed.close();
    assertThatThrownBy(() -> weights.load(closed))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the manager is closed: it takes no arrays");
    NDManager capped = manager.newSubManager();
    capped.cap();
    assertThatThrownBy(() -> weights.load(capped)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void aPathOfAJavaFileSystemIsNotTakenForOneOnTheDisk() throws IOException {
    Map<String, String> create = Map.of("create", "true");
    try (FileSystem zip = FileSystems.newFileSystem(folder.resolve("a.zip"), create)) {
      assertThatThrownBy(() -> Weights.open(zip.getPath("/model.safetensors")))
          .isInstanceOf(MisuseException.class)
          .hasMessageEndingWith(
              "a.zip!/model.safetensors is in a file system of Java, and not on a disk");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aSessionThatIsClosed(boolean lazy) throws IOException {
    GantrySession session = GantrySession.open();
    shards();
    Weights weights = Weights.open(folder, session);
    session.close();
    assertThatThrownBy(() -> weights.load(manager, Machine.loadOptions(lazy).build()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("closed");
  }

  @Test
  void aGpuThatIsNotThere() throws IOException {
    Assumptions.assumeTrue(GantrySession.bestDevice().equals(dev.gantry.core.Device.HOST));
    Weights weights = shards();
    LoadOptions options = LoadOptions.builder().optDevice(Device.gpu(0)).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining("cuda:0");
  }

  @Test
  void aGpuCannotBeLazy() throws IOException {
    Weights weights = shards();
    LoadOptions options = LoadOptions.builder().optDevice(Device.gpu(0)).optLazy(true).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("optLazy");
  }

  @Test
  void aDeviceThatIsNeitherCpuNorCuda() throws IOException {
    Weights weights = shards();
    LoadOptions options = LoadOptions.builder().optDevice(Device.of("mps", 0)).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("mps");
  }

  @ParameterizedTest
  @EnumSource(names = "HOST", mode = EnumSource.Mode.EXCLUDE)
  void aPathThatCannotServeTheCpu(Transport path) throws IOException {
    Weights weights = shards();
    LoadOptions options = LoadOptions.builder().optDevice(Device.cpu()).optTransport(path).build();
    assertThatThrownBy(() -> weights.load(manager, options))
        .isInstanceOf(DeviceUnavailableException.class)
        .hasMessageContaining(path.toString());
  }

  private void assertCancelled(LoadOptions.Builder options) throws IOException {
    Weights weights = shards();
    TransferException failure =
        catchThrowableOfType(TransferException.class, () -> weights.load(manager, options.build()));
    assertThat(failure).isNotNull();
    assertThat(failure.failure()).isEqualTo(new Failure.Cancelled());
  }

  /// Returns three data files with one vector each.
  private Weights shards() throws IOException {
    for (int i = 1; i <= 3; i++) {
      new WeightsFile()
          .raw("t" + i, DType.BF16, TensorShape.of(10_000), new byte[20_000])
          .write(folder.resolve(i + ".safetensors"));
    }
    return Weights.open(folder);
  }
}
