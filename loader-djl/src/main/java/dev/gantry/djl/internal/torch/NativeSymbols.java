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

/// Looks up functions in one library and collects the missing ones, so that one message names them
/// all. Only one thread at a time calls [#required].
final class NativeSymbols {
  private final SymbolLookup lookup;
  private final List<String> missing = new ArrayList<>();

  NativeSymbols(SymbolLookup lookup) {
    this.lookup = lookup;
  }

  /// The function of this name; where there is none, a stand-in that must not be called: see
  /// [#missing].
  NativeFunction required(String name) {
    Optional<MemorySegment> symbol = lookup.find(name);
    if (symbol.isEmpty()) {
      missing.add(name);
    }
    return new NativeFunction(name, symbol.orElse(MemorySegment.NULL));
  }

  /// The function of this name, whose arguments and result are whole numbers and pointers.
  Optional<NativeFunction> optional(String name) {
    return lookup.find(name).map(symbol -> new NativeFunction(name, symbol));
  }

  /// The function of this name, of any type.
  Optional<MethodHandle> optional(String name, FunctionDescriptor type) {
    return lookup.find(name).map(symbol -> Linker.nativeLinker().downcallHandle(symbol, type));
  }

  /// The function of this name, of any type; where there is none, a stand-in that must not be called: see
  /// [#missing].
  MethodHandle required(String name, FunctionDescriptor type) {
    return optional(name, type)
        .orElseGet(() -> {
          missing.add(name);
          return MethodHandles.empty(type.toMethodType());
        });
  }

  /// A pointer to a static method, for native code to call at any time.
  ///
  /// @param lookup of the class that has the method
  static MemorySegment upcall(MethodHandles.Lookup lookup, String method, FunctionDescriptor type) {
    try {
      MethodHandle target = lookup.findStatic(lookup.lookupClass(), method, type.toMethodType());
      return Linker.nativeLinker().upcallStub(target, type, Arena.global());
    } catch (NoSuchMethodException | IllegalAccessException fault) {
      throw new ExceptionInInitializerError(fault);
    }
  }

  /// Names that were required and are not there.
  List<String> missing() {
    return List.copyOf(missing);
  }

  /// The error to throw if a downcall throws: that happens only if this program declares the function's type
  /// wrongly.
  static AssertionError broken(Throwable fault) {
    return new AssertionError("a native call does not fit its declared type", fault);
  }
}
