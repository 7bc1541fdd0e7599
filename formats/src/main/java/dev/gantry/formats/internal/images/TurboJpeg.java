// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;

/// The decoding functions of libturbojpeg, by the names that version 2 introduced and version 3
/// keeps.
final class TurboJpeg {
  /// The environment variable that names the library to load, instead of the library that the
  /// loader finds.
  private static final String VARIABLE = "GANTRY_TURBOJPEG_LIBRARY";

  private static final int RGB = 0;
  private static final int CMYK = 11;

  /// The result of tjGetErrorCode after a picture that was decoded, but had odd bytes.
  private static final int WARNING = 0;

  private static final AddressLayout TEXT =
      ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(256, ValueLayout.JAVA_BYTE));

  private static final Optional<TurboJpeg> LOADED = load();

  private final String description;
  private final MethodHandle init;
  private final MethodHandle header;
  private final MethodHandle decompress;
  private final MethodHandle errorCode;
  private final MethodHandle errorText;
  private final MethodHandle destroy;

  private TurboJpeg(String file, SymbolLookup library) {
    // The library cannot be asked for its version. This function came with version 3.
    description = file + ", version " + (library.find("tj3Init").isPresent() ? "3" : "2");
    // tjhandle tjInitDecompress(void)
    init = function(library, "tjInitDecompress", FunctionDescriptor.of(ADDRESS));
    // int tjDecompressHeader3(tjhandle, const unsigned char *jpegBuf, unsigned long jpegSize,
    //     int *width, int *height, int *jpegSubsamp, int *jpegColorspace)
    header =
        function(
            library,
            "tjDecompressHeader3",
            FunctionDescriptor.of(
                JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS, ADDRESS));
    // int tjDecompress2(tjhandle, const unsigned char *jpegBuf, unsigned long jpegSize,
    //     unsigned char *dstBuf, int width, int pitch, int height, int pixelFormat, int flags)
    decompress =
        function(
            library,
            "tjDecompress2",
            FunctionDescriptor.of(
                JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT,
                JAVA_INT, JAVA_INT));
    // int tjGetErrorCode(tjhandle)
    errorCode = function(library, "tjGetErrorCode", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    // char *tjGetErrorStr2(tjhandle)
    errorText = function(library, "tjGetErrorStr2", FunctionDescriptor.of(TEXT, ADDRESS));
    // int tjDestroy(tjhandle)
    destroy = function(library, "tjDestroy", FunctionDescriptor.of(JAVA_INT, ADDRESS));
  }

  private static MethodHandle function(
      SymbolLookup library, String name, FunctionDescriptor prototype) {
    return Linker.nativeLinker().downcallHandle(library.findOrThrow(name), prototype);
  }

  /// Returns the library, if this machine has it.
  static Optional<TurboJpeg> loaded() {
    return LOADED;
  }

  /// The name by which the library was loaded, and its version.
  String description() {
    return description;
  }

  private static Optional<TurboJpeg> load() {
    if (!JAVA_LONG.equals(Linker.nativeLinker().canonicalLayouts().get("long"))) {
      return Optional.empty();
    }
    String named = System.getenv(VARIABLE);
    List<String> candidates =
        named != null
            ? List.of(named)
            : List.of(
                "libturbojpeg.so.0",
                "/opt/libjpeg-turbo/lib64/libturbojpeg.so",
                "libturbojpeg.dylib",
                "/opt/homebrew/lib/libturbojpeg.dylib");
    for (String candidate : candidates) {
      try {
        return Optional.of(
            new TurboJpeg(candidate, SymbolLookup.libraryLookup(candidate, Arena.global())));
      } catch (IllegalArgumentException | NoSuchElementException _) {
        // The next candidate may be there, and may have all functions.
      }
    }
    return Optional.empty();
  }

  /// Decodes a JPEG of one, three or four components.
  ///
  /// @param reduction the divisor of each side's length: 1, 2, 4 or 8; the quotient is rounded up
  /// @param arena allocates the pixels
  Pixels decode(MemorySegment encoded, ImageHeader found, int reduction, Arena arena)
      throws IOException {
    try {
      MemorySegment handle = (MemorySegment) init.invokeExact();
      if (handle.address() == 0) {
        throw new IOException("libturbojpeg has no memory for a decoder");
      }
      try {
        checkSize(handle, encoded, found, arena);
        return pixels(handle, encoded, found, reduction, arena);
      } finally {
        int _ = (int) destroy.invokeExact(handle);
      }
    } catch (IOException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("a downcall threw it", e);
    }
  }

  /// Compares the library's view of the header with ours, by which the memory is allocated.
  private void checkSize(
      MemorySegment handle, MemorySegment encoded, ImageHeader found, Arena arena)
      throws Throwable {
    MemorySegment four = arena.allocate(JAVA_INT, 4);
    long step = JAVA_INT.byteSize();
    check(
        handle,
        (int)
            header.invokeExact(
                handle,
                encoded,
                encoded.byteSize(),
                four,
                four.asSlice(step),
                four.asSlice(2 * step),
                four.asSlice(3 * step)));
    int width = four.getAtIndex(JAVA_INT, 0);
    int height = four.getAtIndex(JAVA_INT, 1);
    if (width != found.width() || height != found.height()) {
      throw new IOException(
          "the JPEG has two frames, of %d x %d and of %d x %d pixels"
              .formatted(found.width(), found.height(), width, height));
    }
  }

  private Pixels pixels(
      MemorySegment handle, MemorySegment encoded, ImageHeader found, int reduction, Arena arena)
      throws Throwable {
    boolean cmyk = found.components() == 4;
    int width = Math.ceilDiv(found.width(), reduction);
    int height = Math.ceilDiv(found.height(), reduction);
    int pitch = width * (cmyk ? 4 : Pixels.CHANNELS);
    MemorySegment memory = arena.allocate((long) pitch * height, Long.BYTES);
    check(
        handle,
        (int)
            decompress.invokeExact(
                handle,
                encoded,
                encoded.byteSize(),
                memory,
                width,
                pitch,
                height,
                cmyk ? CMYK : RGB,
                0));
    return cmyk ? Pixels.ofCmyk(memory, width, height) : Pixels.ofRgb(memory, width, height);
  }

  private void check(MemorySegment handle, int result) throws Throwable {
    if (result != 0 && (int) errorCode.invokeExact(handle) != WARNING) {
      MemorySegment text = (MemorySegment) errorText.invokeExact(handle);
      throw new IOException("the JPEG cannot be decoded: " + text.getString(0));
    }
  }
}
