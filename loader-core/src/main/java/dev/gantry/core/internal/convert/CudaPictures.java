// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.internal.batch.DevicePictures.Resampling;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Pool;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.CudaKernel;
import dev.gantry.core.internal.natives.NvJpeg;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Decodes pictures on one device by libnvjpeg, and resizes them by the kernel of `resample.cu`.
/// Thread-safe: concurrent callers decode pictures at the same time.
public final class CudaPictures implements AutoCloseable {
  /// The most pixels of a picture that is decoded on the device. The limit bounds the device
  /// memory of each caller.
  private static final long MAX_PIXELS = 16 << 20;

  private static final String ENTRY = "resample";
  private static final int CHANNELS = 3;
  private static final int KEPT_SECONDS = 10;
  private static final int MAX_KEPT = 64;

  // These numbers must be the same as in `resample.cu`.
  private static final int THREADS = 256;
  private static final int PARAMETER_BYTES = 4 * Long.BYTES + 6 * Integer.BYTES;

  private final CudaContext context;
  private final NvJpeg.Decoder decoder;
  private final CudaKernel kernel;
  private final Pool<Worker> idle = new Pool<>(KEPT_SECONDS, () -> MAX_KEPT, Worker::close);

  /// Made with the decoder, so that closing it needs no heap.
  private final List<Runnable> closing = List.of(idle::free, this::closeDecoder);

  private CudaPictures(CudaContext context, NvJpeg.Decoder decoder, CudaKernel kernel) {
    this.context = context;
    this.decoder = decoder;
    this.kernel = kernel;
  }

  /// Initialises libnvjpeg for a device; absent if this machine does not have it.
  static Availability<CudaPictures> of(CudaContext context, Converters converters) {
    CudaKernel kernel = converters.kernel(context, ENTRY);
    try (var _ = context.enter()) {
      return NvJpeg.find()
          .then(NvJpeg::decoder)
          .then(decoder -> Availability.present(new CudaPictures(context, decoder, kernel)));
    }
  }

  /// Decodes a picture, and returns when its pixels are in `target`.
  ///
  /// @param jpeg the whole file
  /// @param target the address of the result on the device
  /// @param free an event that was recorded after all queued work that still uses the memory of
  ///     the result
  /// @return whether libnvjpeg decodes this picture; if not, nothing was written
  /// @throws dev.gantry.core.TransferException if the device fails
  public boolean decode(MemorySegment jpeg, Resampling how, long target, CudaDriver.Event free) {
    if ((long) how.sourceWidth() * how.sourceHeight() > MAX_PIXELS) {
      return false;
    }
    Worker kept = idle.take(1);
    Worker worker = kept == null ? newWorker() : kept;
    if (worker == null) {
      return false;
    }
    boolean decoded = Cleanup.orUndo(() -> worker.decode(jpeg, how, target, free), worker::close);
    idle.keep(worker, 1);
    return decoded;
  }

  private @Nullable Worker newWorker() {
    try (var _ = context.enter()) {
      return decoder
          .state()
          .toOptional()
          .map(state -> Cleanup.orUndo(() -> new Worker(state), state::close))
          .orElse(null);
    }
  }

  /// Frees libnvjpeg's resources. No picture may be decoded any more.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  private void closeDecoder() {
    try (var _ = context.enter()) {
      decoder.close();
    }
  }

  /// The decoder's state, the stream and the memory that decode one picture at a time.
  private final class Worker {
    private final NvJpeg.State state;

    /// Made with the worker, so that closing it needs no heap.
    private final List<Runnable> leaving =
        List.of(
            this::awaitWork,
            this::leaveStream,
            () -> release(this.memory),
            () -> release(this.table));

    private final CudaDriver.Stream stream = context.streams().stream();
    private @Nullable DeviceSlab memory;
    private @Nullable PinnedSlab table;

    /// Whether the last wait for the device has ended well.
    private boolean atRest;

    Worker(NvJpeg.State state) {
      this.state = state;
    }

    boolean decode(MemorySegment jpeg, Resampling how, long target, CudaDriver.Event free) {
      CudaDriver driver = context.driver();
      long tableBytes = (long) how.table().remaining() * Integer.BYTES;
      long pixelBytes = (long) CHANNELS * how.sourceWidth() * how.sourceHeight();
      reserve(tableBytes, pixelBytes);
      long device = Objects.requireNonNull(memory).address();
      PinnedSlab pinned = Objects.requireNonNull(table);
      try (var _ = context.enter()) {
        long pixels = device + tableBytes;
        boolean decoded = state.decode(jpeg, how.sourceWidth(), how.sourceHeight(), pixels, stream);
        if (decoded) {
          MemorySegment.copy(
              MemorySegment.ofBuffer(how.table()), 0, pinned.segment(), 0, tableBytes);
          driver.copyToDevice(device, pinned.address(), tableBytes, stream);
          driver.await(stream, free);
          launch(how, pixels, target, device);
        }
        driver.synchronize(stream);
        return decoded;
      }
    }

    /// Takes larger memory if the picture needs it: a quarter more than it needs, so that somewhat
    /// larger pictures fit, too.
    private void reserve(long tableBytes, long pixelBytes) {
      DeviceSlab device = memory;
      if (device == null || device.size() < tableBytes + pixelBytes) {
        memory = null;
        release(device);
        memory = DeviceSlab.allocate(context, (tableBytes + pixelBytes) * 5 / 4, stream);
      }
      PinnedSlab pinned = table;
      if (pinned == null || pinned.size() < tableBytes) {
        table = null;
        release(pinned);
        table = PinnedSlab.allocate(context, tableBytes * 5 / 4);
      }
    }

    private void launch(Resampling how, long pixels, long target, long tableOnDevice) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment parameter = arena.allocate(PARAMETER_BYTES, Long.BYTES);
        ByteBuffer fields = parameter.asByteBuffer().order(ByteOrder.nativeOrder());
        fields.putLong(pixels).putLong((long) CHANNELS * how.sourceWidth());
        fields.putLong(target).putLong(tableOnDevice);
        fields.putInt(how.width()).putInt(how.height());
        fields.putInt(how.columnWeights()).putInt(how.rowWeights());
        fields.putInt(how.mirrored() ? 1 : 0);
        kernel.launch(how.height(), THREADS, parameter, stream);
      }
    }

    void close() {
      Cleanup.runAll(leaving);
    }

    private void awaitWork() {
      try (var _ = context.enter()) {
        context.driver().synchronize(stream);
        atRest = true;
        state.close();
      }
    }

    private void leaveStream() {
      if (atRest) {
        context.streams().giveBack(stream);
      } else {
        context.streams().destroy(stream, List.of());
      }
    }

    private void release(@Nullable Slab slab) {
      if (slab != null) {
        slab.release();
      }
    }
  }
}
