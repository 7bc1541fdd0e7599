// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Looks up functions in one library and collects the names that it lacks, so that one message
/// lists them all. Only one thread at a time may call [#required].
final class NativeSymbols {
  private final SymbolLookup lookup;
  private final List<String> missing = new ArrayList<>();

  NativeSymbols(SymbolLookup lookup) {
    this.lookup = lookup;
  }

  /// Returns the function of this name. If the library lacks it, returns a stand-in that must not
  /// be called: see [#missing].
  NativeFunction required(String name) {
    Optional<MemorySegment> symbol = lookup.find(name);
    if (symbol.isEmpty()) {
      missing.add(name);
    }
    return new NativeFunction(name, symbol.orElse(MemorySegment.NULL));
  }

  /// Returns the number that the function of this name returns, which takes no arguments; 0 if the
  /// library lacks it: see [#missing].
  int constant(String name) {
    NativeFunction function = required(name);
    return function.symbol().equals(MemorySegment.NULL) ? 0 : (int) function.call(0);
  }

  /// Returns the function of this name, whose arguments and result are whole numbers and pointers;
  /// empty if the library lacks it.
  Optional<NativeFunction> optional(String name) {
    return lookup.find(name).map(symbol -> new NativeFunction(name, symbol));
  }

  /// Returns the function of this name and type. If the library lacks it, returns a stand-in that
  /// must not be called: see [#missing].
  MethodHandle required(String name, FunctionDescriptor type) {
    return lookup
        .find(name)
        .map(symbol -> Linker.nativeLinker().downcallHandle(symbol, type))
        .orElseGet(() -> {
          missing.add(name);
          return MethodHandles.empty(type.toMethodType());
        });
  }

  /// Returns a pointer to a static method, which native code may call at any time.
  ///
  /// @param lookup a lookup in the class that has the method
  static MemorySegment upcall(MethodHandles.Lookup lookup, String method, FunctionDescriptor type) {
    try {
      MethodHandle target = lookup.findStatic(lookup.lookupClass(), method, type.toMethodType());
      return Linker.nativeLinker().upcallStub(target, type, Arena.global());
    } catch (NoSuchMethodException | IllegalAccessException fault) {
      throw new ExceptionInInitializerError(fault);
    }
  }

  /// Returns the required names that the library lacks.
  List<String> missing() {
    return List.copyOf(missing);
  }

  /// Returns the error to throw if a downcall throws, which happens only if the function's type is
  /// declared wrongly here.
  static AssertionError broken(Throwable fault) {
    return new AssertionError("a native call does not fit its declared type", fault);
  }
}
