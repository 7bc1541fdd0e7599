// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import jcuda.Pointer;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/// A kernel that reads a batch for a given time. It stands in for a training step, on the default stream,
/// where libtorch queues its kernels. For one thread.
final class BusyKernel implements AutoCloseable {
  /// Fewer threads than the device has, so that copies on it find room.
  private static final int BLOCKS = 64;

  private static final int THREADS = 256;

  private final CudaContext context;
  private final CUmodule module = new CUmodule();
  private final CUfunction function = new CUfunction();
  private final DeviceSlab sink;

  /// @param code `busy.cu` as PTX
  BusyKernel(CudaContext context, Path code) throws IOException {
    this.context = context;
    byte[] text = Files.readString(code).getBytes(StandardCharsets.UTF_8);
    try (var _ = context.enter()) {
      // The text ends with a NUL.
      check(JCudaDriver.cuModuleLoadData(module, Arrays.copyOf(text, text.length + 1)));
      check(JCudaDriver.cuModuleGetFunction(function, module, "busy"));
    }
    sink = DeviceSlab.allocate(context, 4096);
  }

  /// Queues the kernel.
  void launch(long address, long bytes, long nanos) {
    Pointer parameters =
        Pointer.to(
            Pointer.to(new long[] {address}),
            Pointer.to(new long[] {bytes}),
            Pointer.to(new long[] {nanos}),
            Pointer.to(new long[] {sink.address()}));
    try (var _ = context.enter()) {
      check(
          JCudaDriver.cuLaunchKernel(
              function, BLOCKS, 1, 1, THREADS, 1, 1, 0, null, parameters, null));
    }
  }

  /// Runs `count` kernels on their own memory and nothing else, and waits for the last one.
  void alone(long count, long nanos) {
    for (long i = 0; i < count; i++) {
      launch(sink.address(), sink.size(), nanos);
    }
    await();
  }

  /// Waits for all that was queued.
  void await() {
    context.synchronize();
  }

  /// Marks a moment of the default stream.
  Moment mark() {
    CUevent event = new CUevent();
    try (var _ = context.enter()) {
      check(JCudaDriver.cuEventCreate(event, 0));
      check(JCudaDriver.cuEventRecord(event, null));
    }
    return new Moment(event);
  }

  /// A CUDA event in the default stream; its time is known once the stream has reached it.
  static final class Moment {
    private final CUevent event;

    private Moment(CUevent event) {
      this.event = event;
    }

    /// Returns the milliseconds from an earlier event to this one; waits for neither.
    float since(Moment earlier) {
      float[] milliseconds = new float[1];
      check(JCudaDriver.cuEventElapsedTime(milliseconds, earlier.event, event));
      return milliseconds[0];
    }
  }

  private static void check(int result) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new MisuseException("CUDA " + CUresult.stringFor(result));
    }
  }

  @Override
  public void close() {
    context.synchronize();
    sink.release();
    try (var _ = context.enter()) {
      check(JCudaDriver.cuModuleUnload(module));
    }
  }
}
