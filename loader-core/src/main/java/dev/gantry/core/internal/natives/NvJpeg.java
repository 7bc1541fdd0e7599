// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;

/// libnvjpeg: decodes JPEGs on a CUDA device. The device's primary context must be current for all calls. Thread-safe, but
/// a [State] serves one thread at a time.
///
/// Source: nvJPEG API reference, CUDA 11.0 to 13.
public final class NvJpeg {
  /// The environment variable that names the library to use; if it is set, no other library is tried.
  public static final String VARIABLE = "GANTRY_NVJPEG_LIBRARY";

  private static final List<String> SONAMES =
      List.of("libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11");

  // NVJPEG_BACKEND_DEFAULT
  private static final int DEFAULT_BACKEND = 0;

  // NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION: colours of half the resolution are interpolated,
  // as in libjpeg.
  private static final int INTERPOLATION = 1 << 5;
  private static final int INTERPOLATION_SINCE = 12_001;

  // NVJPEG_OUTPUT_RGBI
  private static final int RGB_INTERLEAVED = 5;
  private static final int CHANNELS = 3;

  // NVJPEG_MAX_COMPONENT. nvjpegImage_t has an address for each component, then a pitch for each
  // component.
  private static final int MAX_COMPONENTS = 4;

  private final NativeLibrary library;
  private final MethodHandle property;
  private final MethodHandle create;
  private final MethodHandle destroy;
  private final MethodHandle stateCreate;
  private final MethodHandle stateDestroy;
  private final MethodHandle imageInfo;
  private final MethodHandle decode;

  private NvJpeg(NativeLibrary library) {
    this.library = library;
    // nvjpegStatus_t nvjpegGetProperty(libraryPropertyType type, int *value)
    property = function("nvjpegGetProperty", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    // nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t *dev_allocator,
    //     nvjpegPinnedAllocator_t *pinned_allocator, unsigned int flags, nvjpegHandle_t *handle)
    create =
        function(
            "nvjpegCreateEx",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, ADDRESS));
    // nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle)
    destroy = function("nvjpegDestroy", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    // nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t *jpeg_handle)
    stateCreate =
        function("nvjpegJpegStateCreate", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS));
    // nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t jpeg_handle)
    stateDestroy = function("nvjpegJpegStateDestroy", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    // nvjpegStatus_t nvjpegGetImageInfo(nvjpegHandle_t handle, const unsigned char *data, size_t
    // length,
    //     int *nComponents, nvjpegChromaSubsampling_t *subsampling, int *widths, int *heights)
    imageInfo =
        function(
            "nvjpegGetImageInfo",
            FunctionDescriptor.of(
                JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS));
    // nvjpegStatus_t nvjpegDecode(nvjpegHandle_t handle, nvjpegJpegState_t jpeg_handle, const
    // unsigned char *data,
    //     size_t length, nvjpegOutputFormat_t output_format, nvjpegImage_t *destination,
    // cudaStream_t stream)
    decode =
        function(
            "nvjpegDecode",
            FunctionDescriptor.of(
                JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
  }

  private MethodHandle function(String name, FunctionDescriptor prototype) {
    return library.function(name, prototype).orElseThrow(NoSuchElementException::new);
  }

  /// Finds the library, once in a process: the library that the variable names, else the first in
  /// the dynamic loader's search or the CUDA toolkit's folders.
  public static Availability<NvJpeg> find() {
    return Holder.FOUND;
  }

  private static final class Holder {
    static final Availability<NvJpeg> FOUND =
        NativeLibrary.named(VARIABLE, System.getenv(VARIABLE))
            .orElseGet(() -> NativeLibrary.load(candidates()))
            .then(Holder::bind);

    private static List<String> candidates() {
      List<String> candidates = new ArrayList<>(SONAMES);
      SONAMES.forEach(soname -> candidates.addAll(NativeLibrary.toolkitPaths(soname)));
      return candidates;
    }

    private static Availability<NvJpeg> bind(NativeLibrary library) {
      try {
        return Availability.present(new NvJpeg(library));
      } catch (NoSuchElementException lacking) {
        return Availability.absent(String.valueOf(lacking.getMessage()));
      }
    }
  }

  /// The library's file and version, such as `libnvjpeg.so.12, version 12.4`.
  public String description() {
    int version = version();
    return library.name() + ", version " + version / 1000 + "." + version % 1000;
  }

  /// Returns the sum of 1,000 times the major version and the minor version.
  private int version() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_INT);
      int version = 0;
      for (int part = 0; part < 2; part++) {
        int _ = (int) property.invokeExact(part, value);
        version = 1000 * version + value.get(JAVA_INT, 0);
      }
      return version;
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// Makes the library ready for the current context; this takes some 0.1 s.
  public Availability<Decoder> decoder() {
    int flags = version() >= INTERPOLATION_SINCE ? INTERPOLATION : 0;
    return made(
            "nvjpegCreateEx",
            made ->
                (int)
                    create.invokeExact(
                        DEFAULT_BACKEND, MemorySegment.NULL, MemorySegment.NULL, flags, made))
        .then(handle -> Availability.present(new Decoder(handle)));
  }

  private interface Maker {
    /// @param made receives the address of the new object
    int make(MemorySegment made) throws Throwable;
  }

  private Availability<MemorySegment> made(String operation, Maker maker) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment made = arena.allocate(ADDRESS);
      int status = maker.make(made);
      return status == 0
          ? Availability.present(made.get(ADDRESS, 0))
          : Availability.absent(operation + " of " + library.name() + ": status " + status);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  private static void free(MethodHandle function, MemorySegment object) {
    try {
      // The status is ignored, since nothing can be done about an object that the library does not
      // free.
      int _ = (int) function.invokeExact(object);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// The library in one context.
  public final class Decoder implements AutoCloseable {
    private final MemorySegment handle;

    private Decoder(MemorySegment handle) {
      this.handle = handle;
    }

    public Availability<State> state() {
      return made("nvjpegJpegStateCreate", made -> (int) stateCreate.invokeExact(handle, made))
          .then(state -> Availability.present(new State(handle, state)));
    }

    /// Call this after all states are closed.
    @Override
    public void close() {
      free(destroy, handle);
    }
  }

  /// The library's decoder state, which is used for one picture after the other.
  public final class State implements AutoCloseable {
    private final MemorySegment handle;
    private final MemorySegment state;

    private State(MemorySegment handle, MemorySegment state) {
      this.handle = handle;
      this.state = state;
    }

    /// Queues the decoding of a JPEG to RGB of 8 bits on the device, row after row. A part of the
    /// decoding is done on this thread.
    ///
    /// @param jpeg the whole file, which must not change until the stream's work is done
    /// @param width the picture's width; if the library finds another size, it does not decode
    /// @param target the address of `3 * width * height` bytes of the device
    /// @return whether the library decodes this picture; if not, work that it queued may remain on the stream
    public boolean decode(
        MemorySegment jpeg, int width, int height, long target, CudaDriver.Stream stream) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment components = arena.allocate(JAVA_INT);
        MemorySegment subsampling = arena.allocate(JAVA_INT);
        MemorySegment widths = arena.allocate(JAVA_INT, MAX_COMPONENTS);
        MemorySegment heights = arena.allocate(JAVA_INT, MAX_COMPONENTS);
        long bytes = jpeg.byteSize();
        int known =
            (int)
                imageInfo.invokeExact(
                    handle, jpeg, bytes, components, subsampling, widths, heights);
        if (known != 0
            || components.get(JAVA_INT, 0) != CHANNELS
            || widths.get(JAVA_INT, 0) != width
            || heights.get(JAVA_INT, 0) != height) {
          return false;
        }
        MemorySegment image = arena.allocate(JAVA_LONG, 2 * MAX_COMPONENTS);
        image.setAtIndex(JAVA_LONG, 0, target);
        image.setAtIndex(JAVA_LONG, MAX_COMPONENTS, (long) CHANNELS * width);
        int status =
            (int)
                decode.invokeExact(
                    handle, state, jpeg, bytes, RGB_INTERLEAVED, image, stream.address());
        return status == 0;
      } catch (Throwable thrown) {
        throw NativeLibrary.unchecked(thrown);
      }
    }

    /// Call this after the work of all pictures is done.
    @Override
    public void close() {
      free(stateDestroy, state);
    }
  }
}
