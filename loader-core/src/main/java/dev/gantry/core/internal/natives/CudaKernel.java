// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/// A kernel that the driver compiled from PTX for one context. Thread-safe.
public final class CudaKernel {
  /// The most blocks of a kernel that fetches bytes of the host. A few blocks fill the link, and
  /// the kernels of a training run at the same time. With a block for each piece, batches of 38 MB
  /// reached DJL on an H200 at 38 GB/s, and at 44 with 128 blocks.
  public static final int FETCHING_BLOCKS = 128;

  private final CudaDriver.Context context;
  private final CUmodule module = new CUmodule();
  private final CUfunction function = new CUfunction();

  private CudaKernel(CudaDriver.Context context) {
    this.context = context;
  }

  /// Compiles and loads a kernel for a context. The driver keeps the compiled kernel on disk for
  /// the next process.
  ///
  /// @param owner the class beside which the PTX file lies
  /// @param entry the kernel's entry point, which is also the file's name
  /// @throws dev.gantry.core.TransferException if the driver or the device is too old
  public static CudaKernel load(CudaDriver.Context context, Class<?> owner, String entry) {
    return compile(context, ptx(owner, entry + ".ptx"), entry);
  }

  /// Compiles and loads a kernel from generated PTX, as [#load] does from a file.
  public static CudaKernel compile(CudaDriver.Context context, String ptx, String entry) {
    CudaKernel kernel = new CudaKernel(context);
    try (var _ = CudaDriver.entered(context)) {
      CudaDriver.check(JCudaDriver.cuModuleLoadData(kernel.module, ptx), "cuModuleLoadData", entry);
      int result = JCudaDriver.cuModuleGetFunction(kernel.function, kernel.module, entry);
      try {
        CudaDriver.check(result, "cuModuleGetFunction", entry);
      } catch (RuntimeException | Error failure) {
        kernel.unload();
        throw failure;
      }
    }
    return kernel;
  }

  private static String ptx(Class<?> owner, String name) {
    try (InputStream in = Objects.requireNonNull(owner.getResourceAsStream(name), name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Queues the kernel. Its context must be current.
  ///
  /// @param blocks the number of blocks, in one dimension
  /// @param threads the number of threads in a block
  /// @param parameter the kernel's only parameter, in native memory, which the call copies
  public void launch(int blocks, int threads, MemorySegment parameter, CudaDriver.Stream stream) {
    Pointer parameters = Pointer.to(new CudaDriver.HostAddress(parameter.address()));
    CudaDriver.check(
        JCudaDriver.cuLaunchKernel(
            function, blocks, 1, 1, threads, 1, 1, 0, stream.handle, parameters, null),
        "cuLaunchKernel",
        blocks + " blocks of " + threads + " threads");
  }

  /// Unloads the kernel, which must not be running.
  public void unload() {
    try (var _ = CudaDriver.entered(context)) {
      CudaDriver.check(JCudaDriver.cuModuleUnload(module), "cuModuleUnload", "module");
    }
  }
}
