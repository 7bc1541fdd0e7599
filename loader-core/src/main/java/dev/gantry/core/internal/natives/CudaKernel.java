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

/// A kernel that the driver compiled from PTX, for the context that was current then. Its calls need
/// that context to be current, and loading needs one, too. Thread-safe.
public final class CudaKernel {
  private final CUmodule module;
  private final CUfunction function;

  private CudaKernel(CUmodule module, CUfunction function) {
    this.module = module;
    this.function = function;
  }

  /// Compiles and loads; the driver keeps what it compiled on disk for the next process.
  ///
  /// @param owner beside which the PTX lies
  /// @param entry of the kernel, after which its file is named
  /// @throws dev.gantry.core.TransferException if the driver or the device is too old
  public static CudaKernel load(Class<?> owner, String entry) {
    String ptx = ptx(owner, entry + ".ptx");
    CUmodule module = new CUmodule();
    CudaDriver.check(JCudaDriver.cuModuleLoadData(module, ptx), "cuModuleLoadData", entry);
    CUfunction function = new CUfunction();
    int result = JCudaDriver.cuModuleGetFunction(function, module, entry);
    CudaKernel kernel = new CudaKernel(module, function);
    try {
      CudaDriver.check(result, "cuModuleGetFunction", entry);
    } catch (RuntimeException failure) {
      kernel.unload();
      throw failure;
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

  /// Queues the kernel.
  ///
  /// @param blocks of one dimension
  /// @param threads of each block
  /// @param parameter the kernel's only one, in native memory, which the call copies
  public void launch(int blocks, int threads, MemorySegment parameter, CudaDriver.Stream stream) {
    Pointer parameters = Pointer.to(new CudaDriver.HostAddress(parameter.address()));
    CudaDriver.check(
        JCudaDriver.cuLaunchKernel(
            function, blocks, 1, 1, threads, 1, 1, 0, stream.handle, parameters, null),
        "cuLaunchKernel",
        blocks + " blocks of " + threads + " threads");
  }

  /// The kernel must not run any more.
  public void unload() {
    CudaDriver.check(JCudaDriver.cuModuleUnload(module), "cuModuleUnload", "module");
  }
}
