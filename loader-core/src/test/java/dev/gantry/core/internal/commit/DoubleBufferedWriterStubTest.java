// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
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

/// The two buffers of a writer, on a device that does not report the end of its copies.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class DoubleBufferedWriterStubTest {
  private static final int BYTES = PlanLimits.BLOCK_BYTES;
  private static final int CUDA_LAUNCH_FAILED = 719;

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final CudaContext context = CudaContext.of(new Device.Cuda(0));
  private final TransferEngine engine = new TransferEngine(Libc.INSTANCE);
  private final List<String> ends = new ArrayList<>();
  private List<Slab> slabs = List.of();
  private FileCommit file;
  private DoubleBufferedWriter writer;

  /// Queues a copy to the first buffer.
  @BeforeEach
  void put() {
    cuda.clear();
    DeviceSlab source = DeviceSlab.allocate(context, BYTES);
    WriteOptions options =
        WriteOptions.defaults().withTransport(Transport.STAGED).withRequestBytes(BYTES);
    PinnedSlab first = PinnedSlab.allocate(context, BYTES);
    PinnedSlab second = PinnedSlab.allocate(context, BYTES);
    slabs = List.of(source, first, second);
    Source part = new Memory.OnDevice(context.device(), source.address(), BYTES);
    file =
        new FileCommit(engine, new NewFile(folder.resolve("file"), List.of(part)), options, true);
    DoubleBufferedWriter.Buffers buffers =
        new DoubleBufferedWriter.Buffers(
            first, second, () -> ends.add("given back"), () -> ends.add("abandoned"));
    writer =
        new DoubleBufferedWriter(
            buffers, false, Map.of(), new TransferCounter(new SessionCounters()));
    writer.put(new FileCommit.WriteTask(file, 0));
  }

  @AfterEach
  void close() {
    cuda.clear();
    file.abandon(new Folders(engine.calls()), new IllegalStateException("not written"));
    engine.close();
    Slab.releaseAll(slabs);
  }

  @Test
  void buffersAreGivenBackWhereTheWholeDeviceWasAwaited() {
    cuda.fail("cuStreamSynchronize", 1, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(writer::close).hasMessageContaining("cuStreamSynchronize");
    assertThat(ends).containsExactly("given back");
  }

  @Test
  void buffersWhoseCopiesCannotBeAwaitedAreLeftToTheDevice() {
    cuda.fail("cuStreamSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    cuda.fail("cuCtxSynchronize", 0, CUDA_LAUNCH_FAILED, 0);
    assertThatThrownBy(writer::close).hasMessageContaining("cuStreamSynchronize");
    assertThat(ends).containsExactly("abandoned");
    cuda.clear();
    context.synchronize();
  }
}
