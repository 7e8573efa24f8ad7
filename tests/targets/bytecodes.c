/* The native methods of chaos/Bytecodes.java: what JVMTI says of the code of all classes, in an environment of its own. A class's
   hash is its tag, so that nothing needs to know it by name. Indices into the constant pool are left out: when a class is redefined,
   HotSpot may give what it has twice another number. */
#include <jni.h>
#include <jvmti.h>
#include <stdio.h>

static jvmtiEnv *jvmti;

static jlong hash_bytes(jlong hash, const unsigned char *bytes, jint length) {
    for (jint i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211LL;
    }
    return hash;
}

static jint at(const unsigned char *code) {
    return (jint)((unsigned)code[0] << 24 | code[1] << 16 | code[2] << 8 | code[3]);
}

/* How long an instruction is (JVMS 6.5). */
static jint length_of(const unsigned char *code, jint pc) {
    unsigned char op = code[pc];
    jint aligned = (pc + 4) & ~3;
    if (op == 0xaa) { /* tableswitch */
        return aligned - pc + 12 + 4 * (at(code + aligned + 8) - at(code + aligned + 4) + 1);
    }
    if (op == 0xab) { /* lookupswitch */
        return aligned - pc + 8 + 8 * at(code + aligned + 4);
    }
    if (op == 0xc4) { /* wide, of iinc and of others */
        return code[pc + 1] == 0x84 ? 6 : 4;
    }
    if (op == 0xb9 || op == 0xba || op == 0xc8 || op == 0xc9) {
        return 5;
    }
    if (op == 0xc5) {
        return 4;
    }
    if (op == 0x11 || op == 0x13 || op == 0x14 || op == 0x84 || (op >= 0x99 && op <= 0xa8) || (op >= 0xb2 && op <= 0xb8) ||
        op == 0xbb || op == 0xbd || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7) {
        return 3;
    }
    return op == 0x10 || op == 0x12 || (op >= 0x15 && op <= 0x19) || (op >= 0x36 && op <= 0x3a) || op == 0xa9 || op == 0xbc ? 2 : 1;
}

/* How many bytes of its index follow an instruction. */
static jint index_of(unsigned char op) {
    if (op == 0x12) {
        return 1;
    }
    return op == 0x13 || op == 0x14 || (op >= 0xb2 && op <= 0xbb) || op == 0xbd || op == 0xc0 || op == 0xc1 || op == 0xc5 ? 2 : 0;
}

static jlong hash_code(jlong hash, const unsigned char *code, jint length) {
    for (jint pc = 0; pc < length;) {
        jint size = length_of(code, pc), index = index_of(code[pc]);
        hash = hash_bytes(hash, code + pc, 1);
        hash = hash_bytes(hash, code + pc + 1 + index, size - 1 - index);
        pc += size;
    }
    return hash;
}

static jlong hash_text(jlong hash, const char *text) {
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211LL;
    }
    return hash;
}

static jlong hash_method(jmethodID method) {
    char *name, *signature;
    unsigned char *code;
    jint length;
    if ((*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL) != JVMTI_ERROR_NONE) {
        return 1;
    }
    jlong hash = hash_text(hash_text(7, name), signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    /* Native and abstract ones have none. */
    if ((*jvmti)->GetBytecodes(jvmti, method, &length, &code) == JVMTI_ERROR_NONE) {
        hash = hash_code(hash, code, length);
        (*jvmti)->Deallocate(jvmti, code);
    }
    return hash;
}

/* The sum: the order of methods may change. Zero where there is nothing to be compared. */
static jlong hash_class(jclass class) {
    jint status, count;
    jmethodID *methods;
    if ((*jvmti)->GetClassStatus(jvmti, class, &status) != JVMTI_ERROR_NONE || !(status & JVMTI_CLASS_STATUS_PREPARED) ||
        (*jvmti)->GetClassMethods(jvmti, class, &count, &methods) != JVMTI_ERROR_NONE) {
        return 0;
    }
    jlong sum = count;
    for (jint i = 0; i < count; i++) {
        sum += hash_method(methods[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
    return sum;
}

static int prepare(JNIEnv *env) {
    jvmtiCapabilities wanted = {.can_tag_objects = 1, .can_get_bytecodes = 1};
    JavaVM *vm;
    return jvmti || ((*env)->GetJavaVM(env, &vm) == JNI_OK &&
                     (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) == JNI_OK &&
                     (*jvmti)->AddCapabilities(jvmti, &wanted) == JVMTI_ERROR_NONE);
}

JNIEXPORT jint JNICALL Java_Bytecodes_baseline(JNIEnv *env, jclass self) {
    jint count, known = 0;
    jclass *classes;
    if (!prepare(env) || (*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return -1;
    }
    for (jint i = 0; i < count; i++) {
        jlong hash = hash_class(classes[i]);
        known += hash != 0 && (*jvmti)->SetTag(jvmti, classes[i], hash) == JVMTI_ERROR_NONE;
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
    return known;
}

JNIEXPORT jstring JNICALL Java_Bytecodes_changed(JNIEnv *env, jclass self) {
    jint count, changed = 0;
    jclass *classes;
    char said[400] = "-1";
    if (!prepare(env) || (*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return (*env)->NewStringUTF(env, said);
    }
    char one[300] = "";
    for (jint i = 0; i < count; i++) {
        jlong tag = 0;
        (*jvmti)->GetTag(jvmti, classes[i], &tag);
        if (tag != 0 && hash_class(classes[i]) != tag) {
            char *signature;
            changed++;
            if ((*jvmti)->GetClassSignature(jvmti, classes[i], &signature, NULL) == JVMTI_ERROR_NONE) {
                snprintf(one, sizeof one, "%s", signature);
                (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
            }
        }
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
    snprintf(said, sizeof said, "%d %s", changed, one);
    return (*env)->NewStringUTF(env, said);
}
