// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeElement;
import java.lang.classfile.instruction.InvokeDynamicInstruction;
import java.lang.classfile.instruction.NewObjectInstruction;
import java.lang.classfile.instruction.NewPrimitiveArrayInstruction;
import java.lang.classfile.instruction.NewReferenceArrayInstruction;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;

/// Lets any allocation of Gantry's own code on chosen threads fail with an OutOfMemoryError. The
/// JVM has an agent that adds a call of this class before each allocation. Allocations by
/// libraries and the JDK do not fail.
public final class HeapFaults {
  private static final ClassDesc SELF = ClassDesc.of(HeapFaults.class.getName());
  private static final MethodTypeDesc NO_ARGUMENTS = MethodTypeDesc.of(ConstantDescs.CD_void);
  private static final AtomicInteger MADE = new AtomicInteger();

  private static volatile String threads = "";
  private static volatile int failing;
  private static volatile @Nullable OutOfMemoryError thrown;

  private HeapFaults() {}

  /// Returns the environment variables that give a child's JVM the agent, which is written to a
  /// folder.
  public static Map<String, String> environment(Path folder) throws IOException {
    Manifest manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest.getMainAttributes().putValue("Premain-Class", HeapFaults.class.getName());
    Path agent = folder.resolve("heap-faults.jar");
    try (OutputStream out = Files.newOutputStream(agent);
        JarOutputStream _ = new JarOutputStream(out, manifest)) {}
    return Map.of("JDK_JAVA_OPTIONS", "-javaagent:" + agent);
  }

  /// The agent's entry, which the JVM calls before the program begins.
  public static void premain(String options, Instrumentation instrumentation) {
    instrumentation.addTransformer(
        new ClassFileTransformer() {
          @Override
          public byte @Nullable [] transform(
              @Nullable ClassLoader loader,
              String name,
              @Nullable Class<?> redefined,
              ProtectionDomain domain,
              byte[] bytes) {
            boolean ours =
                loader != null
                    && name.startsWith("dev/gantry/")
                    && !name.startsWith("dev/gantry/testing/");
            return ours ? withCalls(loader, bytes) : null;
          }
        });
  }

  private static byte[] withCalls(ClassLoader loader, byte[] bytes) {
    ClassFile file =
        ClassFile.of(
            ClassFile.ClassHierarchyResolverOption.of(
                ClassHierarchyResolver.ofResourceParsing(loader)));
    return file.transformClass(
        file.parse(bytes),
        ClassTransform.transformingMethodBodies((code, element) -> {
          if (allocates(element)) {
            code.invokestatic(SELF, "allocation", NO_ARGUMENTS);
          }
          code.with(element);
        }));
  }

  private static boolean allocates(CodeElement element) {
    return switch (element) {
      case NewObjectInstruction _, NewReferenceArrayInstruction _, NewPrimitiveArrayInstruction _ ->
          true;
      // These calls make lambdas and join strings; pattern switches and the methods of records
      // make none. A lambda without captured variables is made only once.
      case InvokeDynamicInstruction call ->
          Set.of("LambdaMetafactory", "StringConcatFactory")
                  .contains(call.bootstrapMethod().owner().displayName())
              && call.typeSymbol().parameterCount() > 0;
      default -> false;
    };
  }

  /// From now on, counts the allocations of threads whose names begin with `prefix`, and lets one
  /// of them fail.
  ///
  /// @param number the number of the failing allocation, from 1; 0 for none
  public static void begin(String prefix, int number) {
    thrown = null;
    failing = number;
    MADE.set(0);
    threads = prefix;
  }

  /// Stops counting allocations.
  ///
  /// @return the number of counted allocations
  public static int end() {
    threads = "";
    return MADE.get();
  }

  /// Returns the error that was thrown since the last [#begin]; null for none.
  public static @Nullable OutOfMemoryError thrown() {
    return thrown;
  }

  /// The added code calls this method before each allocation.
  public static void allocation() {
    String prefix = threads;
    if (!prefix.isEmpty()
        && Thread.currentThread().getName().startsWith(prefix)
        && MADE.incrementAndGet() == failing) {
      OutOfMemoryError none = new OutOfMemoryError("made up");
      thrown = none;
      throw none;
    }
  }
}
